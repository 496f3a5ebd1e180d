"""The SQL of a capture: what it creates in the database, and what its records hold."""

import re

from highwater.databases.captures import Capture, Names
from highwater.databases.database import FORMS_OF_TEXT, Database, quoted

CAPTURES = """
    create table if not exists highwater.captures (
        table_schema text,
        table_name text,
        capture bigint not null,
        method text not null,
        key_columns text not null,
        enabled_at timestamptz not null default clock_timestamp(),
        disabled_at timestamptz,
        landed bigint,
        primary key (table_schema, table_name)
    )
"""

CHANGELOG = """
    create table {changelog} (
        change_number bigint generated always as identity primary key,
        change_type text not null,
        changed_at timestamptz not null default clock_timestamp(),
        row_before jsonb,
        row_after jsonb,
        extraction bigint
    )
"""

# One text for each value, of a capture and of an export: that of PostgreSQL's JSON. What is JSON itself keeps its own
# letters: a NULL in it is none of the column, and a text has quotes.
TEXTS = """
    select
        attname,
        attnum,
        is_json,
        case
            when is_json then format('%s.%I::text', '{row}', attname)
            else format('to_jsonb(%s.%I) #>> {nothing}', '{row}', attname)
        end as value
    from (
        select
            attname,
            attnum,
            coalesce(nullif(typbasetype, 0), pg_type.oid)
            in ('json'::regtype, 'jsonb'::regtype, 'json[]'::regtype, 'jsonb[]'::regtype) as is_json
        from pg_attribute
        inner join pg_type on pg_type.oid = atttypid
        where attrelid = {relation} and attnum > 0 and not attisdropped
    ) as columns_of_table
"""

NOTHING = "''{}''"

# What a trigger records of a row whose columns may be JSON: it looks at them as they are now.
IMAGE_OF = f"""
    create function highwater.image_of(own anyelement, relation oid) returns jsonb language plpgsql stable as $image$
    declare
        names text;
        texts text;
        image jsonb;
    begin
        select string_agg(quote_literal(attname), ', ' order by attnum), string_agg(value, ', ' order by attnum)
        into names, texts
        from ({TEXTS.format(row="($1)", relation="relation", nothing=NOTHING)}) as texts_of_columns
        having bool_or(is_json);
        if texts is null then
            return to_jsonb(own);
        end if;
        execute 'select jsonb_object(array[' || names || '], array[' || texts || '])' into image using own;
        return image;
    end
    $image$
"""

RECORD_CHANGE = """
            insert into {changelog} (change_type, row_before, row_after) values (
                lower(tg_op),
                case when tg_op <> 'INSERT' then highwater.image_of(old, tg_relid) end,
                case when tg_op <> 'DELETE' then highwater.image_of(new, tg_relid) end
            );
"""

# Whoever changes the table may have set them to anything.
SET_TEXTS = " ".join(FORMS_OF_TEXT)

# A row that a trigger changes in turn may be one whose own change is recorded after that, as it was before. From the
# first change in turn until its transaction ends, what is recorded is therefore how the rows of the keys are now.
RECORD_ROWS = """
        elsif pg_trigger_depth() > 1 or current_setting('highwater.in_turn', true) = 'on' then
            perform set_config('highwater.in_turn', 'on', true);
            if tg_op = 'DELETE' or tg_op = 'UPDATE' and not ({same_key}) then
                row_now := (select highwater.image_of(own.*, tg_relid) from {source} as own where {as_old});
                insert into {changelog} (change_type, row_before, row_after)
                values (
                    case when row_now is null then 'delete' else 'update' end,
                    highwater.image_of(old, tg_relid),
                    row_now
                );
            end if;
            if tg_op <> 'DELETE' then
                row_now := (select highwater.image_of(own.*, tg_relid) from {source} as own where {as_new});
                insert into {changelog} (change_type, row_before, row_after)
                values (
                    case when row_now is null then 'delete' else lower(tg_op) end,
                    highwater.image_of(new, tg_relid),
                    row_now
                );
            end if;
"""

# Whoever changes the table needs no right on the changelog: the function has its owner's.
FUNCTION = (
    f"""
    create function {{function}}() returns trigger language plpgsql security definer
    {SET_TEXTS} as $capture$
    declare
        row_now jsonb;
    begin
        if tg_op = 'TRUNCATE' then
            insert into {{changelog}} (change_type) values ('truncate');
        {{record_rows}}
        else"""
    + RECORD_CHANGE
    + """
        end if;
        return null;
    end
    $capture$
"""
)

# An insert-only capture refuses what it could not show.
INSERTS = f"""
    create function {{function}}() returns trigger language plpgsql security definer
    {SET_TEXTS} as $capture$
    begin
        if tg_op <> 'INSERT' then
            raise exception '%.% is captured as insert-only by highwater: % is refused',
                tg_table_schema, tg_table_name, tg_op
            using hint = 'Capture it by the method changelog to change and delete rows.';
        end if;
        insert into {{changelog}} (change_type, row_after) values ('insert', highwater.image_of(new, tg_relid));
        return null;
    end
    $capture$
"""

FUNCTIONS = {"changelog": FUNCTION, "changelog-insert": INSERTS}

# The transaction that wrote a row, with the epoch that its 32 bits lack. A row that nobody has touched for 2^32
# transactions counts as new once more, and is only extracted again.
WRITTEN_BY = """
    case
        when xmin::text::bigint < 3 then 0
        when xmin::text::bigint > mod(pg_snapshot_xmax(pg_current_snapshot())::text::bigint, 4294967296)
            then (pg_snapshot_xmax(pg_current_snapshot())::text::bigint / 4294967296 - 1) * 4294967296
        else pg_snapshot_xmax(pg_current_snapshot())::text::bigint / 4294967296 * 4294967296
    end + xmin::text::bigint
"""

# A record lands as one JSON document with every value as text, so that no number passes through a double.
RECORD = """
    jsonb_build_object(
        'capture', '{capture}',
        'change_number', {number}::text,
        'change_type', {kind},
        'changed_at', (extract(epoch from {at}) * 1000)::bigint::text,
        'before', (select jsonb_object_agg(key, value) from jsonb_each_text({before})),
        'after', (select jsonb_object_agg(key, value) from jsonb_each_text({after}))
    )::text
"""


def texts_of(database: Database, names: Names, row: str) -> list[tuple[str, str, str]]:
    """Return name, `t` or `f` for being JSON, and the SQL of the text of each column, as captures and exports have it.

    Arguments:
        row: what the row is called in the SQL.
    """
    texts = TEXTS.format(row=row, relation="to_regclass(?)", nothing=NOTHING)
    return database.rows(f"select attname, is_json, value from ({texts}) as texts order by attnum", names.source)


def spare_the_look(function: str, texts: list[tuple[str, str, str]]) -> str:
    """Return a function of a trigger that looks at the columns only of a row that has others than these.

    A look costs several times what the rest of the trigger does.

    Arguments:
        texts: the columns of the table, see texts_of; one that is JSON needs the look.
    """
    if any(is_json == "t" for _, is_json, _ in texts):
        return function
    fields = ", ".join("'" + field.replace("'", "''") + "'" for field, _, _ in texts)
    return re.sub(
        r"highwater\.image_of\((own\.\*|old|new), tg_relid\)",
        lambda found: (
            f"case when to_jsonb({found[1]}) - array[{fields}]::text[] = '{{}}' "
            f"then to_jsonb({found[1]}) else {found[0]} end"
        ),
        function,
    )


def image_of_row(database: Database, names: Names) -> str:
    """Return the SQL of what a record holds of a row of `source`: the same as what a trigger records."""
    texts = texts_of(database, names, "source")
    if all(is_json == "f" for _, is_json, _ in texts):
        return "to_jsonb(source.*)"
    fields = ", ".join("'" + field.replace("'", "''") + "'" for field, _, _ in texts)
    return f"jsonb_object(array[{fields}], array[{', '.join(value for _, _, value in texts)}])"


def call_after_changes(database: Database, table: str, trigger: str, function: str) -> None:
    """Make the triggers that call a function after every changed row of a table, and after it is truncated."""
    database.run(
        f"create trigger {quoted(trigger)} after insert or update or delete on {table} "
        f"for each row execute function {function}()"
    )
    database.run(
        f"create trigger {quoted(trigger + '_truncate')} after truncate on {table} "
        f"for each statement execute function {function}()"
    )


def same_key(key: list[str], left: str, right: str) -> str:
    """Return the condition that two rows have the same values in the columns of a key, none of which is null."""
    return " and ".join(f"{left}.{quoted(field)} = {right}.{quoted(field)}" for field in key)


def record_rows(names: Names, primary_key: list[str]) -> str:
    """Return the part of a trigger for changes in turn; a table without a primary key has none."""
    if not primary_key:
        return ""
    return RECORD_ROWS.format(
        source=names.source,
        changelog=names.changelog,
        same_key=same_key(primary_key, "old", "new"),
        as_old=same_key(primary_key, "own", "old"),
        as_new=same_key(primary_key, "own", "new"),
    )


def baseline_query(database: Database, names: Names, capture: Capture) -> str:
    """Every row of the table; a later capture first empties the table of what an earlier one left."""
    after = image_of_row(database, names)
    record = RECORD.format(capture=capture.number, number=0, kind="'baseline'", at="now()", before="null", after=after)
    rows = f"select row_number() over () + 1 as source_line, {record} as record from {names.source} as source"
    if capture.number == 1:
        return rows
    emptied = RECORD.format(
        capture=capture.number, number=0, kind="'truncate'", at="now()", before="null", after="null"
    )
    return f"select 1 as source_line, {emptied} as record union all {rows}"


def changes_query(names: Names, capture: Capture, extraction: int) -> str:
    """Every change that an extraction has marked, in the order of their numbers."""
    record = RECORD.format(
        capture=capture.number,
        number="change_number",
        kind="change_type",
        at="changed_at",
        before="row_before",
        after="row_after",
    )
    return (
        f"select row_number() over (order by change_number) as source_line, {record} as record "
        f"from {names.changelog} where extraction = {extraction}"
    )
