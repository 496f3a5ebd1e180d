"""Tables from the DDL of databases: names, types, units, keys and comments, and what becomes of them."""

import os
import re
import shlex
import subprocess

import pytest
from forked import forked
from highwater.catalog.columns import TYPE, parse_columns
from highwater.catalog.feeds import declared_feeds
from highwater.catalog.source_types import source_type
from highwater.landing.deliveries import undeclared
from highwater.runtime.errors import UsageError
from highwater.scaffold.add_tables import add_tables, dialect_of, found_columns
from highwater.scaffold.ddl import tables_of_ddl
from repository import PROJECT
from test_commands import run
from workshop import copy_empty_project, environment_of_a_user

# as pg_dump 18 writes them, with psql's own commands
POSTGRESQL = r"""
\restrict Q1
SET statement_timeout = 0;
CREATE TYPE public.mood AS ENUM ('a', 'b');
CREATE DOMAIN public.price AS numeric(8,3) DEFAULT 0 CONSTRAINT c CHECK ((VALUE > (0)::numeric));
CREATE FUNCTION public.f() RETURNS integer LANGUAGE plpgsql AS $$ begin create table no (a int); return 1; end; $$;
CREATE TABLE public."Order Details" (
    order_id bigint NOT NULL,
    "Line No" integer DEFAULT nextval('x'::regclass) NOT NULL,
    status character varying(20) DEFAULT 'new, or (not)'::character varying,
    total numeric(12,2) CONSTRAINT positive CHECK ((total > (0)::numeric)),
    tags text[], at timestamp with time zone, ts timestamp(3) without time zone, t timestamp without time zone,
    feeling public.mood, paid public.price, place public.geometry, any_number numeric, wide numeric(50,2),
    b bytea, f double precision, "Go" real
);
COMMENT ON COLUMN public."Order Details".total IS 'sum of lines; it''s EUR {{ 1/0 }}';
ALTER TABLE public."Order Details" OWNER TO me;
ALTER TABLE ONLY public."Order Details" ADD CONSTRAINT pk PRIMARY KEY (order_id, "Line No");
CREATE UNIQUE INDEX i ON public."Order Details" USING btree (status);
CREATE TABLE Parts (Id bigserial primary key, at timestamptz) PARTITION BY RANGE (id);
CREATE TABLE parts_2 PARTITION OF Parts FOR VALUES FROM (1) TO (2);
CREATE TABLE copied AS SELECT 1;
"""
# as mysqldump 8.4 does
MYSQL = """
DROP TABLE IF EXISTS `orders`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
CREATE TABLE `orders` (
  `id` int unsigned NOT NULL AUTO_INCREMENT,
  `big` bigint(20) unsigned DEFAULT NULL,
  `status` enum('a','b)','c, d') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL COMMENT 'state',
  `total` decimal(12,2) unsigned NOT NULL, `plain` decimal, `at` datetime(6), `day_at` datetime,
  `ts` timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
  `b` bit(1), `j` json, `gen` int GENERATED ALWAYS AS (`id` + 1) VIRTUAL,
  PRIMARY KEY (`id`,`status`(10)),
  UNIQUE KEY `u` (`status`), FULLTEXT KEY `ft` (`j`),
  CONSTRAINT `fk` FOREIGN KEY (`big`) REFERENCES `x` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COMMENT='the orders';
"""
# as DBMS_METADATA.GET_DDL does, and by hand
ORACLE = """
CREATE TABLE "SHOP"."ORDERS" ( "ID" NUMBER(10,0) NOT NULL ENABLE, "AMT" NUMBER(12,2), "N" NUMBER, "NS" NUMBER(*,0),
 "ROUND" NUMBER(5,-2), "TINY" NUMBER(2,5), "NAME" VARCHAR2(30 BYTE) DEFAULT 'x', "D" DATE, "TS" TIMESTAMP (6),
 "TN" TIMESTAMP (9), "TZ" TIMESTAMP (6) WITH TIME ZONE, "L" TIMESTAMP (6) WITH LOCAL TIME ZONE, "R" LONG RAW,
 CONSTRAINT "PK" PRIMARY KEY ("ID") USING INDEX PCTFREE 10 INITRANS 2 TABLESPACE "USERS" ENABLE
) SEGMENT CREATION IMMEDIATE PCTFREE 10 TABLESPACE "USERS" ;
/
create global temporary table plain (id number(19), nm varchar2(10 char), k integer);
alter table plain add primary key (id);
"""
# as the scripts of SQL Server Management Studio do
SQLSERVER = """
USE [shop]
GO
CREATE TABLE [dbo].[Order Details](
\t[OrderID] [int] IDENTITY(1,1) NOT NULL,
\t[Name] [nvarchar](40) COLLATE Latin1_General_CI_AS NULL,
\t[M] [money] NULL, [D] [datetime] NULL, [D2] [datetime2](7) NULL, [DO] [datetimeoffset](7), [B] [bit] NULL,
\t[T] [tinyint], [V] [varbinary](max), [NU] [numeric](10, 3), [RV] [timestamp] NOT NULL, [Sum]  AS ([T]+(1)),
 CONSTRAINT [PK_Orders] PRIMARY KEY CLUSTERED
(
\t[OrderID] ASC
)WITH (PAD_INDEX = OFF) ON [PRIMARY]
) ON [PRIMARY]
GO
ALTER TABLE [dbo].[Order Details] ADD  CONSTRAINT [DF]  DEFAULT ((0)) FOR [M]
GO
"""
FILES = {"postgresql": POSTGRESQL, "mysql": MYSQL, "oracle": ORACLE, "sqlserver": SQLSERVER}
EXPECTED = {
    ("postgresql", "Order Details", ("order_id", "Line No")): "order_id bigint, Line No int, status string, "
    "total decimal(12,2), tags string, at timestamp, ts timestamp_ntz[millis], t timestamp_ntz[micros], "
    "feeling string, paid decimal(8,3), place string, any_number string, wide string, b binary, f double, Go float",
    ("postgresql", "parts", ("id",)): "id bigint, at timestamp",
    ("mysql", "orders", ("id", "status")): "id bigint, big decimal(20,0)[unsigned], status string, "
    "total decimal(12,2), plain decimal(10,0), at timestamp_ntz[micros], "
    "day_at timestamp_ntz[millis], ts timestamp, b boolean, j string, "
    "gen int",
    ("oracle", "ORDERS", ("ID",)): "ID decimal(10,0), AMT decimal(12,2), N string, NS decimal(38,0), "
    "ROUND decimal(7,0), TINY decimal(5,5), NAME string, D timestamp_ntz[millis], TS timestamp_ntz[micros], "
    "TN timestamp_ntz[nanos], TZ timestamp, L timestamp, R binary",
    ("oracle", "PLAIN", ("ID",)): "ID decimal(19,0), NM string, K decimal(38,0)",
    ("sqlserver", "Order Details", ("OrderID",)): "OrderID int, Name string, M decimal(19,4), "
    "D timestamp_ntz[millis], D2 timestamp_ntz[nanos], DO timestamp, B boolean, T smallint, V binary, "
    "NU decimal(10,3), RV binary, Sum string",
}


def as_told(found) -> str:
    return ", ".join(f"{c.field} {c.data_type}" + (f"[{c.unit}]" if c.unit else "") for c in found.columns)


@pytest.mark.parametrize("dialect", FILES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tables_of_a_dump(tmp_path, dialect, encoding):
    path = tmp_path / "schema.sql"
    path.write_text(FILES[dialect], encoding=encoding)
    tables = tables_of_ddl(path, dialect)
    found = {
        (dialect, table.name, tuple(table.key)): as_told(found_columns(table, dialect, "debezium-json", {})[0])
        for table in tables
    }
    assert found == {table: columns for table, columns in EXPECTED.items() if table[0] == dialect}


@pytest.mark.parametrize("dialect", FILES)
def test_a_key_that_is_left_out_is_missed(tmp_path, dialect):
    """The control: without the words `primary key` no table has one."""
    path = tmp_path / "schema.sql"
    path.write_text(re.sub("primary key", "UNIQUE", FILES[dialect], flags=re.IGNORECASE))
    assert not any(table.key for table in tables_of_ddl(path, dialect))


def test_only_debezium_has_units_and_only_where_no_setting_says_them(tmp_path):
    path = tmp_path / "schema.sql"
    path.write_text(MYSQL)
    (table,) = tables_of_ddl(path, "mysql")
    for format, settings in (("datastream-json", {}), ("debezium-json", {"times": "isostring"})):
        units = {column.unit for column in found_columns(table, "mysql", format, settings)[0].columns}
        # no setting says that numbers have no sign
        assert units == ({None, "unsigned"} if format == "debezium-json" else {None})


def test_what_cannot_be_told_is_said(tmp_path):
    path = tmp_path / "schema.sql"
    path.write_text(POSTGRESQL)
    doubts = found_columns(tables_of_ddl(path, "postgresql")[0], "postgresql", "debezium-json", {})[1]
    assert [doubt.column for doubt in doubts] == ["place", "any_number", "wide"]
    assert "public.geometry" in doubts[0].said and "50 digits" in doubts[2].said


def test_every_type_that_is_known_is_a_type_of_spark():
    from highwater.catalog.source_types import DIALECTS, SPARK

    for dialect in DIALECTS:
        for name in SPARK:
            assert TYPE.fullmatch(source_type(name, dialect).spark), (dialect, name)


FOUND = "create table t (id int primary key, v text);\n"


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("postgresql", "COPY public.a (x) FROM stdin;\nit's\tdon't \"\ncreate table no (id int);\n\\.\n" + FOUND),
        ("postgresql", "CREATE FUNCTION f() RETURNS text AS $b$ select $x$ don't $x$ $b$ LANGUAGE sql;\n" + FOUND),
        ("postgresql", "\\connect it's\n" + FOUND),
        ("mysql", "-- it's\n# don't\nINSERT INTO `a` VALUES (1,'it\\'s; create table no (id int);');\n" + FOUND),
        ("mysql", "DELIMITER ;;\n/*!50003 CREATE*/ /*!50003 TRIGGER `t1` BEGIN SET x = 'it''s'; END */;;\n" + FOUND),
        ("oracle", "PROMPT it's\nREM don't\nbegin f(q'[it's]'); end;\n/\n" + FOUND.lower()),
        (
            "sqlserver",
            "SET ANSI_NULLS ON\ncreate table #no (id int)\ncreate table t (id int primary key, v text)\nGO\n",
        ),
        ("sqlserver", "EXEC f N'it''s'\r\nGO\r\n" + FOUND.replace("\n", "\r\n")),
    ],
)
def test_what_else_is_in_a_file(tmp_path, dialect, text):
    """Rows, bodies of functions, commands of tools: none of them hides a table or makes one."""
    path = tmp_path / "schema.sql"
    path.write_bytes(text.encode())
    (table,) = tables_of_ddl(path, dialect)
    assert (table.name.lower(), len(table.columns), len(table.key)) == ("t", 2, 1)


@pytest.mark.parametrize(
    ("text", "dialect", "words"),
    [
        ("select 1", "mysql", "creates no table"),
        ("create table `a", "mysql", "cannot be read as DDL of mysql"),
        ("create table t (", "mysql", "creates no table"),
        ("create table", "mysql", "creates no table"),
        ("", "oracle", "creates no table"),
        (b"create table t (a int)\xe9", "mysql", "is not in UTF-8: byte 23"),
    ],
)
def test_a_file_that_is_none(tmp_path, text, dialect, words):
    path = tmp_path / "schema.sql"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match=words):
        tables_of_ddl(path, dialect)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project without tables."""
    copy_empty_project(PROJECT, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def added(project, text, feed="debezium_shop", format="debezium-json", connector="postgresql", **options):
    (project / "schema.sql").write_text(text)
    settings = {"connector": connector} if connector else {}
    return list(add_tables(feed, project / "schema.sql", format, settings, None, **options))


def test_ten_columns_cost_at_most_sixty_lines_in_stubs_and_one_declaration(project):
    columns = [f"column_{n} varchar(20) comment '{'What somebody typed into a field, ' * 2}'" for n in range(9)]
    added(project, "create table lean (id bigint primary key)", connector="mysql")  # the feed's own lines
    before = {path: len(path.read_text().splitlines()) for path in project.glob("models/**/*.*")}
    added(project, f"create table wide (id bigint primary key comment 'Its number.', {', '.join(columns)})")
    after = {path: len(path.read_text().splitlines()) for path in project.glob("models/**/*.*")}
    lines = {path.name: count - before.get(path, 0) for path, count in after.items() if count != before.get(path)}
    assert sum(lines.values()) <= 60 and "wide.yml" in lines, lines
    assert len(lines) == 6 and max(count for name, count in lines.items() if name.endswith(".sql")) <= 5, lines


def test_tables_are_added_once_and_compared_then(project):
    first = added(project, POSTGRESQL)
    assert [(each.table, each.outcome) for each in first] == [
        ("debezium_shop.order_details", "added"),
        ("debezium_shop.parts", "added"),
    ]
    assert [len(set(each.written)) for each in first] == [7, 7]
    declared = (project / "models/tables/shop/order_details.yml").read_text()
    assert "field: Line No" in declared and "key: [order_id, line_no]" in declared
    assert r"sum of lines; it\\'s EUR" in declared
    files = {path: path.read_bytes() for path in project.glob("models/**/*.*")}
    assert [each.outcome for each in added(project, POSTGRESQL)] == ["as it was", "as it was"]
    wider = POSTGRESQL.replace("total numeric(12,2)", "total numeric(14,2), more text").replace("tags text[], ", "")
    details, parts = added(project, wider.replace("(order_id,", "(status,"))
    assert details.notes == [
        "more string is not declared",
        "tags is declared and not in the DDL",
        "total is declared as decimal(12,2), and the DDL says decimal(14,2)",
        "its key is declared as order_id, line_no, and the DDL says status, Line No",
    ]
    assert (details.outcome, parts.outcome) == ("differs", "as it was")
    assert files == {path: path.read_bytes() for path in project.glob("models/**/*.*")}, "nothing is overwritten"


def test_units_are_compared_where_the_ddl_tells_them(project):
    """What it tells none of may be declared by somebody who knows better."""
    text = "create table a (id int primary key, at timestamp(3), seen timestamp, zoned timestamptz, day date);"
    (first,) = added(project, text)
    assert first.outcome == "added"
    log = project / "models/tables/shop/a.yml"
    declared = log.read_text()
    assert declared.count("unit: millis") == declared.count("unit: micros") == 1
    by_hand = declared.replace("unit: millis", "unit: nanos").replace("config: {meta: {unit: micros}}", "config: {}")
    log.write_text(
        by_hand.replace("{name: day, data_type: date}", "{name: day, data_type: date, config: {meta: {unit: millis}}}")
    )
    assert all(f"unit: {unit}" in log.read_text() for unit in ("millis", "nanos")) and "micros" not in log.read_text()
    (again,) = added(project, text)
    assert again.notes == [
        "at is declared as timestamp_ntz[nanos], and the DDL says timestamp_ntz[millis]",
        "seen is declared as timestamp_ntz, and the DDL says timestamp_ntz[micros]",
    ]
    (again,) = added(project, text.replace("at timestamp(3)", "at timestamptz"))
    assert again.notes[0] == "at is declared as timestamp_ntz[nanos], and the DDL says timestamp"
    sources = project / "models/staging/debezium_shop/_debezium_shop__sources.yml"
    sources.write_text(sources.read_text().replace("connector:", "times: isostring\n          connector:"))
    (again,) = added(project, text)
    assert again.outcome == "as it was"


def test_a_table_without_a_key_does_not_keep_the_others_from_being_added(project):
    keyless, other = added(project, "create table a (x int); create table b (x int primary key);")
    assert keyless.refused and "no primary key in line 1" in keyless.notes[0] and "--without-key" in keyless.notes[0]
    assert other.outcome == "added"


def test_the_command_that_is_told_for_a_table_without_a_key_adds_it(project):
    """Of the first table of a feed it has the format too; its columns keep what the DDL says of them."""
    text = 'create table "A B" (x int, y timestamp); create table c (x int, Y int, "p,q" int);'
    (project / "schema.sql").write_text(text)
    new = ["--format", "debezium-json", "--setting", "connector=postgresql", "--dialect", "postgresql"]
    result = run("add-tables", "debezium_shop", "--ddl", "schema.sql", *new, cwd=project)
    assert result.returncode == 1 and not (project / "models/staging").exists(), result.stderr
    told = re.findall(r"highwater (add-table .* --without-key) ", result.stderr)
    assert told == [
        "add-table debezium_shop.a_b --source-table 'A B' --ddl schema.sql --dialect postgresql "
        "--format debezium-json --setting connector=postgresql --without-key",
        "add-table debezium_shop.c --ddl schema.sql --dialect postgresql --format debezium-json "
        "--setting connector=postgresql --without-key",
    ]
    result = run(*shlex.split(told[0]), cwd=project)
    assert result.returncode == 0, result.stderr
    log = (project / "models/tables/shop/a_b.yml").read_text()
    assert "key: []" in log and "unit: micros" in log
    assert not list(project.glob("models/merged/**/a_b*"))
    for key, words in {
        "x:int": "Names alone",
        "z": "'z' is no column of it. Its columns are: x, y, p,q",
        "x,X": "each once",
        "": "",
    }.items():
        result = run("add-table", "debezium_shop.c", "--ddl", "schema.sql", "--key", key, cwd=project)
        assert result.returncode == 1 and words in result.stderr, result.stderr
    one = [*shlex.split(told[1])[:-1], "--key", 'X,"p,q"']
    result = run(*one, cwd=project)
    assert result.returncode == 0, result.stderr
    assert "key: [x, p_q]" in (project / "models/tables/shop/c.yml").read_text()
    assert [each.outcome for each in added(project, text)] == ["as it was", "as it was"]
    assert run(*one[:-1], "y", cwd=project).stderr.endswith("its key is declared as x, p_q, and --key says y\n")
    both = run(*one, "--without-key", cwd=project)
    assert both.returncode == 2 and "--without-key and --key exclude each other" in both.stderr


def test_columns_of_files_without_a_header_are_in_the_order_of_the_table(project):
    (project / "schema.sql").write_text("create table b (x int, `K` int, y int, primary key (`K`));")
    (addition,) = add_tables("tungsten_shop", project / "schema.sql", "tungsten-csv", {"dialect": "mysql"}, None)
    assert addition.key == ["K"]
    assert "columns: [x, K, y]" in (project / "models/staging/tungsten_shop/_tungsten_shop__sources.yml").read_text()


def test_one_table_under_a_name_of_its_own(project):
    (addition,) = added(project, POSTGRESQL, only="order details", inside="lines")
    assert addition.table == "debezium_shop.lines"
    sources = (project / "models/staging/debezium_shop/_debezium_shop__sources.yml").read_text()
    assert "source_table: Order Details" in sources
    with pytest.raises(UsageError, match="creates no table 'nothing'; it creates: Order Details, parts"):
        added(project, POSTGRESQL, only="nothing")


def test_tables_of_one_name_in_two_schemas(project):
    text = "create table shop.orders (id int primary key); create table archive.orders (id bigint primary key);"
    first, second = added(project, text)
    assert first.outcome == "added" and second.refused
    assert "highwater add-table debezium_shop.archive_orders --source-table archive.orders --ddl" in second.notes[0]
    (second,) = added(project, text, only="archive.orders", inside="archive_orders")
    assert second.outcome == "added"
    log = (project / "models/tables/shop/archive_orders.yml").read_text()
    assert "data_type: bigint" in log
    sources = (project / "models/staging/debezium_shop/_debezium_shop__sources.yml").read_text()
    assert "source_table: archive.orders" in sources


def test_tables_that_differ_in_letters_only_are_two(project):
    """Each of them gets its own columns, and the command that is told for the second one works."""
    text = 'create table "Customers" (id int primary key); create table customers (id bigint primary key);'
    first, second = added(project, text)
    assert first.outcome == "added" and second.refused
    told = re.search("highwater (add-table .*)", second.notes[0])[1]
    assert told.startswith("add-table debezium_shop.customers_2 --source-table customers --ddl")
    result = run(*shlex.split(told), cwd=project)
    assert result.returncode == 0, result.stderr
    assert "data_type: bigint" in (project / "models/tables/shop/customers_2.yml").read_text()
    feed = declared_feeds()["debezium_shop"]
    assert feed.source_tables == {"customers": "Customers", "customers_2": "customers"}


def test_where_files_go_is_said_where_folders_are_not_called_like_tables(project):
    """A folder tells its table letter by letter; where all are called like their tables, one line says it."""
    debezium = ["--format", "debezium-json", "--setting", "connector=postgresql"]
    (project / "schema.sql").write_text(
        'create table "Customers" (id int primary key); create table parts (id int primary key);'
    )
    said = run("add-tables", "debezium_shop", "--ddl", "schema.sql", *debezium, cwd=project).stdout
    assert re.search(r"debezium_shop.customers .* landing/debezium_shop/Customers/ *\n", said), said
    assert re.search(r"debezium_shop.parts .* landing/debezium_shop/parts/ *\n", said), said
    next_one = (
        "Now deliver the files of each table into its folder, letter by letter, of landing/debezium_shop/ and run"
    )
    assert f"2 of 2 tables added. {next_one}: highwater build" in said
    said = run("add-tables", "debezium_shop", "--ddl", "schema.sql", cwd=project).stdout
    assert "landing/debezium_shop/Customers/" in said and said.endswith("0 of 2 tables added.\n")

    said = run("add-table", "debezium_shop.big", "--source-table", "BIG", "--key", "id:int", cwd=project).stdout
    assert said.endswith("Now deliver files into landing/debezium_shop/BIG/ and run: highwater build\n")
    (project / "schema.sql").write_text("create table a (id int primary key); create table b (id int primary key);")
    said = run("add-tables", "debezium_bar", "--ddl", "schema.sql", *debezium, cwd=project).stdout
    assert "files go into" not in said
    assert "Now deliver the files of each table into landing/debezium_bar/<table>/ and run: highwater build" in said
    in_records = [*debezium, "--setting", "layout=records"]
    said = run("add-tables", "debezium_pub", "--ddl", "schema.sql", *in_records, cwd=project).stdout
    assert "Now deliver files into landing/debezium_pub/ and run: highwater build" in said
    said = run("add-tables", "changelog_db", "--ddl", "schema.sql", "--format", "changelog", cwd=project).stdout
    assert "Now: highwater extract changelog_db.TABLE --enable" in said


def test_a_folder_that_differs_in_letters_only_is_told_the_declared_one(project):
    added(project, 'create table "Customers" (id int primary key); create table "Größe" (id int primary key);')
    feed = declared_feeds()["debezium_shop"]
    own = "is no declared table of the feed; its files are not read. "
    for folder, meant, another in (
        ("customers", "customers go into debezium_shop/Customers/", "customers_2 --source-table customers"),
        ("CUSTOMERS", "customers go into debezium_shop/Customers/", "customers_2 --source-table CUSTOMERS"),
        # as macOS writes an ö
        ("Gro\u0308ße", "gr_e go into debezium_shop/Größe/", "gro_e --source-table 'Gro\u0308ße'"),
    ):
        assert undeclared(feed, folder) == (
            f"debezium_shop/{folder}/ {own}Folders tell tables letter by letter, and the files of the declared table "
            f"{meant}: deliver them there. If they are those of another table: highwater add-table "
            f"debezium_shop.{another}"
        )
    # another table's folder, whose name inside the project is taken
    assert undeclared(feed, "customers!") == (
        f"debezium_shop/customers!/ {own}Declare it with: highwater add-table debezium_shop.customers_2 "
        "--source-table 'customers!'"
    )
    told = undeclared(feed, "customers").partition("another table: highwater ")[2]
    result = run(*shlex.split(told), "--key", "id:int", cwd=project)
    assert result.returncode == 0, result.stderr


def test_hostile_names_and_comments_reach_no_jinja(project):
    text = """create table "{{ env_var('HOME') }}" ("{{ 1/0 }}" int primary key, "a'b" text);
    comment on column "{{ env_var('HOME') }}"."a'b" is '{{ env_var(''HOME'') }} </script>';"""
    (addition,) = added(project, text)
    assert addition.written, addition.notes
    arguments = ["--quiet", "parse", "--no-partial-parse", "--profiles-dir", "profiles"]
    ended = forked(*arguments, cwd=project, program="dbt", environment=environment_of_a_user())
    assert ended.returncode == 0, ended.stdout
    manifest = (project / "target/manifest.json").read_text()
    assert "env_var('HOME')" in manifest


def test_which_database_wrote_it(project):
    for format, settings, dialect in (
        ("debezium-json", {"connector": "mariadb"}, "mysql"),
        ("datastream-json", {"order": "oracle_sort_keys"}, "oracle"),
        ("tungsten-csv", {"dialect": "oracle"}, "oracle"),
        ("changelog", {}, "postgresql"),
    ):
        assert dialect_of("debezium_new", format, settings, None) == dialect
    with pytest.raises(UsageError, match="--dialect postgresql"):
        dialect_of("arcion_new", "arcion-json", {}, None)


def test_what_a_server_dumps_is_what_its_catalog_says(tmp_path):
    """The real pg_dump of a real PostgreSQL, for a table of its own types."""
    from debezium_shop import SCHEMA, TYPES
    from postgres import serving
    from servers import PASSWORD, USER

    path = tmp_path / "schema.sql"
    with serving("dumped") as server:
        server.sql(SCHEMA + "create view seen as select * from orders; create table other as select 1 as one;")
        command = [server.binaries / "pg_dump", "--schema-only", "-h", "127.0.0.1", "-p", str(server.port), "-U", USER]
        with path.open("w") as file:
            environment = os.environ | {"PGPASSWORD": PASSWORD}
            subprocess.run([*command, "shop"], env=environment, stdout=file, check=True)
    tables = {(table.schema, table.name): table for table in tables_of_ddl(path, "postgresql")}
    keys = {name: table.key for (schema, name), table in tables.items() if schema == "public"}
    assert keys == {
        "every_type": ["id"],
        "every_type_full": ["id"],
        "toasted": ["id"],
        "toasted_full": ["id"],
        "orders": ["id"],
        "Order Details": ["Order ID", "Product-Nr."],
        "loose_keys": ["key"],
        "moved_keys": ["a", "b"],
        "truncated": ["id"],
        "debezium_signal": ["id"],
        "other": [],
    }
    assert ("archive", "orders") in tables
    found, doubts = found_columns(tables["public", "every_type"], "postgresql", "debezium-json", {})
    # a text until somebody says what its producer makes of it: nothing of a value is lost
    as_text = {"c_numeric", "c_money", "c_time", "c_time_3", "c_interval", "c_bit"}
    declared = {name: "string" if name in as_text else kind.lake for name, kind in TYPES.items()}
    assert {column.field: column.data_type for column in found.columns} == {"id": "bigint"} | declared
    assert [doubt for doubt in doubts if "is not known here" in doubt.said] == []


def test_types_of_databases_are_taken_on_the_command_line():
    """A type of Spark's own is itself; what a database calls otherwise becomes what its DDL would."""
    typed = (
        "a:uuid,b:text[],c:timestamptz,d:numeric(12,2),e:NUMBER(10),f:character varying(20),"
        "g:timestamp(3) with time zone,h:timestamp,i:timestamp[millis],j:int unsigned,k:double precision"
    )
    assert [(column.data_type, column.unit) for column in parse_columns(typed)] == [
        ("string", None),
        ("string", None),
        ("timestamp", None),
        ("decimal(12,2)", None),
        ("decimal(10,0)", None),
        ("string", None),
        ("timestamp", None),
        ("timestamp", None),
        ("timestamp", "millis"),
        ("bigint", None),
        ("double", None),
    ]
    for doubtful in ("NUMBER", "numeric(50,2)", "public.mood", "money"):
        with pytest.raises(UsageError, match="unknown type"):
            parse_columns(f"a:{doubtful}")
