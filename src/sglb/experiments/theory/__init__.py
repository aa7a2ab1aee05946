"""`sglb paper theory`: statements of the paper, measured on chains of the library's loop."""
