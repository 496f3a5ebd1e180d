{%- macro comparable_columns(lake, export, names, rules={}, types=none) -%}
    {#- At parse time the columns are not known; nothing is compiled from what is returned then. -#}
    {%- if not execute -%}
        {{ return([]) }}
    {%- endif -%}
    {%- set types = [types, types] if types else [highwater._types_of(lake), highwater._types_of(export)] -%}
    {%- set columns = [] -%}
    {%- for name in names -%}
        {%- for ordinal, side in [(0, lake), (1, export)] if name | lower not in types[ordinal] -%}
            {{ exceptions.raise_compiler_error(
                side ~ " has no column '" ~ name ~ "'; it has: " ~ types[ordinal].keys() | join(', ') ~ "."
            ) }}
        {%- endfor -%}
        {%- set own = rules.get(name, {}) -%}
        {%- for rule in own if rule not in ['trim', 'case', 'scale', 'time_zone'] -%}
            {{ exceptions.raise_compiler_error(
                "column " ~ name ~ " declares the unknown rule '" ~ rule ~ "' of `reconcile`; rules are: trim: true, "
                ~ "case: ignore, scale: <digits>, time_zone: <zone of the export's times>."
            ) }}
        {%- endfor -%}
        {%- set lake_type = types[0][name | lower] -%}
        {%- set export_type = types[1][name | lower] -%}
        {%- set type = highwater._common_type(name, lake_type, export_type, lake, export, own) -%}
        {%- do columns.append({
            'name': name,
            'data_type': type,
            'rules': own,
            'lake': highwater._comparable(highwater._cast_to(name, lake_type, type), type),
            'export': highwater._comparable(highwater._cast_to(name, export_type, type), type),
            'lake_by_rules': highwater._by_rules(highwater._comparable(highwater._cast_to(name, lake_type, type), type), own, type, 'lake'),
            'export_by_rules': highwater._by_rules(highwater._comparable(highwater._cast_to(name, export_type, type), type), own, type, 'export'),
        }) -%}
    {%- endfor -%}
    {{ return(columns) }}
{%- endmacro -%}

{%- macro _types_of(relation) -%}
    {%- set types = {} -%}
    {%- for row in run_query('describe query select * from ' ~ relation).rows -%}
        {%- if 'more fields' in row[1] -%}
            {{ exceptions.raise_compiler_error(
                relation ~ ": the type of " ~ row[0] ~ " is too long for Spark to tell. Set "
                ~ "spark.sql.debug.maxToStringFields to a higher number."
            ) }}
        {%- endif -%}
        {%- do types.update({row[0] | lower: row[1] | lower}) -%}
    {%- endfor -%}
    {{ return(types) }}
{%- endmacro -%}

{%- macro _common_type(name, lake_type, export_type, lake, export, rules) -%}
    {%- set whole = {'tinyint': 3, 'smallint': 5, 'int': 10, 'bigint': 19} -%}
    {%- set texts = ['string', 'char', 'varchar'] -%}
    {%- set kinds = [lake_type.split('(')[0], export_type.split('(')[0]] -%}
    {%- if lake_type == export_type -%}
        {{ return('string' if kinds[0] in texts else lake_type) }}
    {%- elif kinds[0] in texts and kinds[1] in texts -%}
        {{ return('string') }}
    {%- elif kinds | sort == ['double', 'float'] -%}
        {{ return('double') }}
    {%- elif kinds[0] in whole and kinds[1] in whole -%}
        {{ return(kinds[0] if whole[kinds[0]] > whole[kinds[1]] else kinds[1]) }}
    {%- elif kinds | sort == ['timestamp', 'timestamp_ntz'] and rules.get('time_zone') -%}
        {{ return('timestamp_ntz') }}
    {%- elif kinds | reject('in', whole) | unique | list == ['decimal'] -%}
        {%- set digits = [] -%}
        {%- set scales = [] -%}
        {%- for type in [lake_type, export_type] -%}
            {%- set kind = type.split('(')[0] -%}
            {%- set parts = [whole[kind], 0] if kind in whole else type.split('(')[1].rstrip(')').split(',') | map('int') | list -%}
            {%- do digits.append(parts[0] - parts[1]) -%}
            {%- do scales.append(parts[1]) -%}
        {%- endfor -%}
        {%- if digits | max + scales | max <= 38 -%}
            {{ return('decimal(' ~ (digits | max + scales | max) ~ ',' ~ scales | max ~ ')') }}
        {%- endif -%}
    {%- endif -%}
    {{ exceptions.raise_compiler_error(
        "column " ~ name ~ " is " ~ lake_type ~ " in " ~ lake ~ " and " ~ export_type ~ " in " ~ export
        ~ ", which no type holds without loss. Cast one of them."
    ) }}
{%- endmacro -%}

{%- macro _cast_to(name, own_type, type) -%}
{{ return('`' ~ name ~ '`' if own_type == type else 'cast(`' ~ name ~ '` as ' ~ type ~ ')') }}
{%- endmacro -%}

{%- macro _comparable(value, type, depth=0) -%}
    {#- Maps are neither ordered nor comparable: their sorted entries are, wherever the map stands. -#}
    {%- set item = 'item' ~ (depth or '') -%}
    {%- if type == 'variant' -%}
        {{ return('to_json(' ~ value ~ ')') }}
    {%- elif 'map<' not in type and 'variant' not in type -%}
        {{ return(value) }}
    {%- endif -%}
    {%- set inner = type[type.index('<') + 1:-1] -%}
    {%- set parts = highwater._parts_of_type(inner) -%}
    {%- if type.startswith('map<') -%}
        {%- set key = highwater._comparable(item ~ '.key', parts[0], depth + 1) -%}
        {%- set content = highwater._comparable(item ~ '.value', parts[1], depth + 1) -%}
        {%- if (key, content) == (item ~ '.key', item ~ '.value') -%}
            {{ return('sort_array(map_entries(' ~ value ~ '))') }}
        {%- endif -%}
        {{ return(
            'sort_array(transform(map_entries(' ~ value ~ '), ' ~ item ~ ' -> struct(' ~ key ~ ' as key, ' ~ content
            ~ ' as value)))'
        ) }}
    {%- elif type.startswith('array<') -%}
        {{ return('transform(' ~ value ~ ', ' ~ item ~ ' -> ' ~ highwater._comparable(item, inner, depth + 1) ~ ')') }}
    {%- endif -%}
    {%- set fields = [] -%}
    {%- for part in parts -%}
        {%- set field = part.split(':')[0] -%}
        {%- do fields.append(
            highwater._comparable(value ~ '.`' ~ field ~ '`', part[field | length + 1:], depth + 1) ~ ' as `' ~ field ~ '`'
        ) -%}
    {%- endfor -%}
    {{ return('case when ' ~ value ~ ' is not null then struct(' ~ fields | join(', ') ~ ') end') }}
{%- endmacro -%}

{%- macro _parts_of_type(inner) -%}
    {%- set state = namespace(depth=0, part='') -%}
    {%- set parts = [] -%}
    {%- for letter in inner -%}
        {%- if letter in '<(' -%}{%- set state.depth = state.depth + 1 -%}{%- endif -%}
        {%- if letter in '>)' -%}{%- set state.depth = state.depth - 1 -%}{%- endif -%}
        {%- if letter == ',' and state.depth == 0 -%}
            {%- do parts.append(state.part) -%}
            {%- set state.part = '' -%}
        {%- else -%}
            {%- set state.part = state.part ~ letter -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do parts.append(state.part) -%}
    {{ return(parts) }}
{%- endmacro -%}

{%- macro _by_rules(value, rules, type, side) -%}
    {%- set result = namespace(value=value) -%}
    {%- if rules.get('time_zone') and side == 'export' -%}
        {%- set result.value = "cast(to_utc_timestamp(" ~ result.value ~ ", '" ~ rules.time_zone ~ "') as " ~ type ~ ")" -%}
    {%- endif -%}
    {%- if rules.get('trim') -%}
        {%- set result.value = 'trim(' ~ result.value ~ ')' -%}
    {%- endif -%}
    {%- if rules.get('case') == 'ignore' -%}
        {%- set result.value = 'lower(' ~ result.value ~ ')' -%}
    {%- endif -%}
    {%- if 'scale' in rules -%}
        {%- set result.value = 'round(' ~ result.value ~ ', ' ~ rules.scale ~ ')' -%}
    {%- endif -%}
    {{ return(result.value) }}
{%- endmacro -%}
