"""The group of commands, and helpers for arguments that several of them share."""

import click

from highwater.runtime.errors import UsageError
from highwater.runtime.faults import doing


class Command(click.Command):
    """A command that needs a project to run, but not to show its help."""

    def parse_args(self, context, args):
        """Enter the project, then parse the arguments."""
        if self.name != "init" and not (context.resilient_parsing or self._is_asked_for_help(context, args)):
            from highwater.runtime.deployment import take_target
            from highwater.runtime.package import link_package
            from highwater.runtime.project import enter_project

            if self.name in ("build", "dbt"):
                take_target(args)
            enter_project()
            link_package()
        return super().parse_args(context, args)

    def _is_asked_for_help(self, context, args) -> bool:
        if not context.help_option_names:  # of dbt, which has its own
            return bool({"-h", "--help"} & {*args})
        given, *_ = self.make_parser(context).parse_args([*args])
        return bool(given.get("help"))


class Commands(click.Group):
    """The commands. An error in one of them carries its name."""

    command_class = Command

    def invoke(self, context):
        """Run the command of a context."""
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise UsageError("nobody reads the output any more.") from None
        except Exception:
            with doing(f"highwater {context.invoked_subcommand}"):
                raise


@click.group("highwater", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="highwater")
def commands():
    """Exact current-state tables from any change feed, on dbt, Spark and Delta Lake."""


def known(context, parameter, value):
    """Refuse an unknown table before Spark starts, which takes a while."""
    from highwater.catalog.entities import known_table
    from highwater.upkeep.renaming import refuse_half

    refuse_half()
    return value and known_table(value)


def feeds_named(names: tuple[str, ...]):
    """Return the named feeds, or all declared ones if none is named, by name.

    Raises: UsageError when one is not declared.
    """
    from highwater.catalog.feeds import declared_feeds

    feeds = declared_feeds()
    for name in names:
        if name not in feeds:
            raise UsageError(f"no feed {name!r} is declared; declared are: {', '.join(feeds) or 'none'}.")
    return {name: feed for name, feed in feeds.items() if not names or name in names}


def settings_given(settings) -> dict[str, str]:
    """Parse settings of a feed given as NAME=VALUE; return the values by name.

    Raises: UsageError when one has another form.
    """
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, value in pairs:
        if not equals or not value:
            raise UsageError(f"--setting {name!r} is not written as NAME=VALUE, for example dialect=mysql.")
    return {name: value for name, _, value in pairs}
