from .many_rows import in_parts as in_parts
from .report import model_report as model_report
from .results import TableModel as TableModel
from .tables import Table as Table
from .tables import read_table as read_table
