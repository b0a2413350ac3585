from .single_cells import branch_genes as branch_genes
from .single_cells import fit as fit
from .single_cells import project as project
from .pieces import in_parts as in_parts
from .report import table_report as table_report
from .table_map import TableMap as TableMap
from .reading import Table as Table
from .reading import read_table as read_table
