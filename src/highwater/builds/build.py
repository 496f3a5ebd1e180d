"""A build from its begin to its end: it lands, builds what is due, gives its account and keeps its record."""

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import click

from highwater.builds import account, facts, last_build, publish, rejections
from highwater.builds.landing_report import Landed, land_and_tell
from highwater.catalog.entities import logged_tables, models_of_tables
from highwater.catalog.feeds import Feed, declared_feeds
from highwater.catalog.tables import gather_anew, named
from highwater.landing.deliveries import all_empty
from highwater.landing.feed_folders import require_landing_folder
from highwater.runtime.errors import CheckError
from highwater.runtime.printable import printable_text
from highwater.scaffold.new_fields import add_new_fields, types_of_fields
from highwater.spark import dbt, progress, untold
from highwater.spark.lake_tables import newest_commits
from highwater.spark.lease import lease
from highwater.spark.spark import session


@dataclass(frozen=True)
class Plan:
    """What a build is to do.

    Attributes:
        mark: of the project and the arguments, see last_build.fingerprint. last: the record of the last build, whatever
            it was of. record: the same, where it was of the same project; {}: there is none to go on from. arguments:
            of dbt. chosen: what they select, as text; "": nothing. news: by feed, the tables of which something has
            landed since; None: everything is built. is_idle: nothing is to be done.
    """

    mark: str
    last: dict
    record: dict
    arguments: list[str]
    chosen: str
    news: dict[str, list[str]] | None
    is_idle: bool

    @property
    def selected(self) -> list[str]:
        """What dbt is to select, where that is neither everything nor what the arguments say."""
        if self.news is None or self.arguments:
            return []
        return last_build.selection(self.news, self.record["left"])


def build(
    arguments: list[str], is_held: bool = False, is_verbose: bool = False, meet: Callable = lambda spark: ()
) -> int:
    """Land, build what is due, and say what became of every record, also where something failed.

    Arguments:
        arguments: of dbt. is_held: publish a group only when its checks have passed. is_verbose: print dbt's own log.
        meet: meets declarations that differ from their tables, see upkeep.evolution.
    Returns: 0 done, 2 dbt could not do it and has said so.
    Raises: CheckError saying what failed, and what waits for a decision.
    """
    feeds = declared_feeds()
    require_landing_folder(feeds.values())
    rejections.check_thresholds()
    began = time.monotonic()
    with lease("highwater build"):
        if told := last_build.what_the_first_does(len(logged_tables())):
            click.echo(told)
        landed = land_and_tell(session(keeps_classes=True), feeds)
        for failure in [*landed.refused, *landed.failures]:  # told at the end too, behind what dbt says
            click.echo(f"warning: {failure}", err=True)
        add_new_fields(session())
        dbt.set_defaults()
        plan = _plan(feeds, landed, arguments)
        if plan.is_idle:
            _tell_that_nothing_is_due(plan, feeds, landed)
            return 0
        refused = _met(plan, meet)
        if refused and is_held:
            raise CheckError("\n".join(met.sentence for met in refused))
        if not plan.record:  # what was met may be written into the project
            plan = replace(plan, mark=last_build.fingerprint(last_build.split("build", arguments)[1]))
        _begin(plan, is_held)
        with contextlib.nullcontext() if is_verbose else progress.shown(models_of_tables()):
            outcome, withheld = _run(plan, feeds, is_held, refused)
        undecided = _give_account(plan, feeds, landed, outcome, began, refused)
        if outcome.status == 2:
            for words in dbt.waiting.values():
                click.echo(printable_text(words), err=True)
            return 2
        if undecided := [*withheld, *undecided]:
            raise CheckError("\n".join(undecided))
        return 0


def _plan(feeds: dict[str, Feed], landed: Landed, arguments: list[str]) -> Plan:
    """Decide what is to be built, by what has landed, what the last build left, and whether the project is its own."""
    chosen, others = last_build.split("build", arguments)
    mark, last = last_build.fingerprint(others), last_build.remembered()
    other = last_build.other_version(last)
    if other:
        click.echo(f"{other[0].upper()}{other[1:]}.")
    older = last_build.gone_back(last)
    if older:
        click.echo(f"warning: {older}.", err=True)
        gather_anew(session())
    is_same = last.get("fingerprint") == mark and not (older or other) and last_build.has_all_tables(last)
    is_same = is_same and (bool(chosen) or last["is_whole"])
    key = str(sorted(chosen.items())) if chosen else ""
    news = None
    if is_same and chosen:
        newest = {name: list(landing) for name, landing in landed.newest.items()}
        is_idle = not last["left"] and last["selections"].get(key) == newest
    elif is_same:
        news = last_build.news(session(), feeds, last, landed.newest)
        is_idle = news == {} and not last["left"]
    else:
        is_idle = False
    return Plan(mark, last, last if is_same else {}, arguments, key, news, is_idle)


def _tell_that_nothing_is_due(plan: Plan, feeds: dict[str, Feed], landed: Landed) -> None:
    click.echo(
        f"Nothing has landed and nothing in the project has changed since the build of {plan.record['at']} UTC; "
        "dbt has nothing to do. To run it all the same: highwater dbt build"
    )
    click.echo("\n".join(["", plan.record["summary"], *_told_at_end(feeds, landed)]))
    if undecided := [*landed.failures, *landed.changed]:
        raise CheckError("\n".join(undecided))


def _told_at_end(feeds: dict[str, Feed], landed: Landed) -> list[str]:
    refused = [f"\nwarning: {words}" for words in landed.refused]
    empty = [] if landed.failures else all_empty([*feeds.values()], landed.newest)
    return [*(f"\n{words}" for words in empty), *refused]


def _met(plan: Plan, meet: Callable) -> list:
    """Meet declarations that differ from their tables, before anything is written; return what was refused.

    Nothing differs where the project and the tables are those of the last build, and that build left nothing.
    """
    if plan.record and not plan.record["left"] and last_build.has_same_layers(plan.record):
        return []
    refused = []
    dbt.begin(is_same=False)
    for met in meet(session()):
        click.echo(f"{'warning: ' * met.is_refused}{met.sentence}", err=met.is_refused)
        refused += [met] * met.is_refused
    return refused


def _begin(plan: Plan, is_held: bool) -> None:
    """Write down what a build that is killed from here on leaves to the next one: what it was to build."""
    if plan.selected and not is_held:
        last_build.take_again(plan.record, plan.selected)
    else:
        last_build.forget()
    # a view that was left may not have been written since the settings of Spark changed
    is_same = bool(plan.record) and plan.record["is_whole"] and not plan.record["left"]
    dbt.begin(is_same, tells_rejected=True)


def _run(plan: Plan, feeds: dict[str, Feed], is_held: bool, refused: list) -> tuple[dbt.Outcome, list[str]]:
    """Let dbt build; return what it came to, and what to say of publish groups that keep their old rows."""
    if is_held:
        status, withheld = publish.build_held(session(), plan.arguments)
        return dbt.Outcome(status, None if status or withheld else []), withheld
    if plan.selected:
        click.echo(_what_is_built(plan, feeds))
    given = last_build.with_operations(plan.arguments) or dbt.checks_of_data_only()
    given += [word for met in refused for word in ("--exclude", *met.models)]
    before = newest_commits("lake")
    known = [entity for entity, _ in logged_tables()] if plan.record and not plan.record["left"] else []
    with facts.handed_over(known, before):
        selected = [*(["--select"] * bool(plan.selected)), *plan.selected]
        outcome = dbt.outcome_of(["build", *selected, *given], types_of_fields())
    facts.keep(dbt.answers, before)
    return _with_operations(outcome), []


def _with_operations(outcome: dbt.Outcome) -> dbt.Outcome:
    """Build the ledger and the lists that dbt has skipped: a log that failed keeps no other table from its account."""
    skipped = [name for name in last_build.OPERATIONS if f"{name}+" in (outcome.left or ())]
    if not skipped or {*skipped} & {*outcome.failed}:
        return outcome
    again = dbt.outcome_of(["build", "--select", *skipped, *dbt.checks_of_data_only()])
    if again.left is None:
        return replace(outcome, left=None)
    left = [selector for selector in outcome.left if selector.removesuffix("+") not in skipped]
    return replace(outcome, left=[*left, *again.left], failed=(*outcome.failed, *again.failed))


def _what_is_built(plan: Plan, feeds: dict[str, Feed]) -> str:
    every, some = sum(len(feed.tables) for feed in feeds.values()), sum(map(len, plan.news.values()))
    due = [f"something has landed for {some:,} of {every:,} declared tables"] if some else []
    if left := plan.record["left"]:
        models = [name.removesuffix("+") for name in left if name.endswith("+")]
        due.append(f"the last build has left {named(models or left)}")
    told = ", and ".join(due) or "something has landed for no declared table"
    return f"{told[0].upper()}{told[1:]}; the other tables stay as they are. To build everything: highwater dbt build"


def _give_account(plan: Plan, feeds, landed: Landed, outcome: dbt.Outcome, began: float, refused: list) -> list[str]:
    """Say what is where after a build and what became of every record, and record the build.

    Returns: what failed, and what waits for somebody.
    """
    is_done = outcome.status < 2
    rejected, unasked = rejections.of_build(session(), dbt.appended, bool(dbt.recorded)) if is_done else ([], [])
    words, uncounted, counts, accounted = last_build.summary(
        session(), rejected, plan.record or None, dbt.pending, bool(dbt.recorded), dbt.empty
    )
    news = [rejections.why_no_trouble(rejected)]
    if is_done:
        news.insert(0, account.since_the_last(account.remembered(), accounted, counts))
        account.remember(accounted, counts)
    if dbt.waiting:
        news.append(f"Records of {named([*dbt.waiting])} wait for a declaration and are in no count; see below.")
    news += [f"warning: {words_}" for words_ in dbt.doubtful.values()]
    news.append(_not_taken_in(outcome))
    news = ["", *filter(None, news)] if any(news) else []
    ending = f"The build took {time.monotonic() - began:.0f} s."
    click.echo("\n".join([*news, "", words, *_told_at_end(feeds, landed), "", ending]))
    if is_done and not unasked:
        untold.told("rejected")
    left = outcome.left
    if left is not None:
        left += [f"{entity}_changes+" for entity in dbt.waiting]
        left += [f"{met.entity}_changes+" for met in refused]
        left += [_table_that_was_not_counted(line) for line in uncounted]
    if outcome.has_begun:
        _keep_record(plan, landed, left, words, counts)
    else:  # all is as it was
        last_build.take_again(plan.last, ())
    if outcome.status == 0 and not (plan.arguments or left):  # every test has passed
        untold.told("fields")
    troubles = [*rejections.troubles_of_connectors(rejected)]
    troubles += [trouble for found in rejected for trouble in rejections.troubles_of(found)]
    failed = _failed(outcome) if outcome.status == 1 else []
    waiting = [*(met.sentence for met in refused), *dbt.waiting.values()]
    return [*landed.failures, *landed.changed, *waiting, *unasked, *troubles, *uncounted, *failed]


def _table_that_was_not_counted(line: str) -> str:
    name = line.split()[0]
    return f"{name}_changes+" if name in dict(logged_tables()) else f"{name}+"


def _not_taken_in(outcome: dbt.Outcome) -> str | None:
    """Return of which tables records may be in no count: their log was not built."""
    if outcome.left is None:
        return "Not everything was built; what the logs do not have yet is in no count." if outcome.status else None
    known, left = models_of_tables(), [selector.removesuffix("+") for selector in outcome.left]
    tables = sorted({known[name][0] for name in left if name in known and known[name][1] in ("staging", "log")})
    return (
        f"Of {named(tables)} not everything was built; records that no log has yet are in no count." if tables else None
    )


def _failed(outcome: dbt.Outcome) -> list[str]:
    what = f"failed: {named([*outcome.failed])}." if outcome.failed else "dbt failed."
    if outcome.left is None:
        return [f"{what} The next build takes everything again."]
    return [f"{what} The next build takes that, and what depends on it, again; all else stays as it is."]


def _keep_record(plan: Plan, landed: Landed, left: Iterable[str] | None, words: str, counts: dict) -> None:
    """Record a build, so that the next one goes on from it; where that cannot be, the next one takes everything."""
    record, newest = plan.record, landed.newest
    if left is None:
        last_build.forget()
    elif not plan.chosen:
        last_build.remember(plan.mark, newest, words, counts, left, record.get("selections"))
    else:
        # what it did not select is as it was, and what has landed since is news to the next build of everything
        selections = {} if left or landed.failures else record.get("selections", {}) | {plan.chosen: newest}
        last_build.remember(
            plan.mark,
            record.get("landings", {}),
            words,
            counts,
            {*record.get("left", ()), *left},
            selections,
            record.get("is_whole", False),
        )


def run_dbt(arguments: list[str]) -> int:
    """Run any command of dbt; return what it ends with. One that makes tables leaves what it failed to make.

    Arguments:
        arguments: as typed behind `dbt`.
    """
    command = next((word for word in arguments if not word.startswith("-")), "")
    if not command or command in dbt.WITHOUT_SPARK or {"-h", "--help"} & {*arguments}:
        return dbt.run(arguments)
    with lease(f"highwater dbt {command}"):
        session()
        if arguments[0] in dbt.READING:
            return dbt.run(arguments, types_of_fields())
        dbt.set_defaults()
        record, is_same = last_build.remembered(), False
        if arguments[0] in dbt.BUILDING:
            _, others = last_build.split(arguments[0], arguments[1:])
            is_same = record.get("fingerprint") == last_build.fingerprint(others)
        last_build.forget()
        outcome = dbt.outcome_of(arguments, types_of_fields())
        if arguments[0] in dbt.BUILDING and not outcome.has_begun:
            last_build.take_again(record, ())
        elif is_same and outcome.left is not None:
            last_build.take_again(record, outcome.left)
        return outcome.status
