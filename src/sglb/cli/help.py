"""Print the help of a command with its options in groups, as plain text."""

from typing import Any

from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """A command whose help lists the options of each group under a heading."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a list of options for each group, those without a group first."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            is_argument = parameter.param_type_name == "argument"
            panel = getattr(parameter, "rich_help_panel", None)
            heading = "Arguments" if is_argument else panel or "Options"
            groups.setdefault(heading, []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)
