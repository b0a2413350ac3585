import sys

from idm_nb.command.command_line import main

if __name__ == "__main__":
    sys.exit(main())
