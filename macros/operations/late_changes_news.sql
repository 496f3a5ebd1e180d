{%- macro late_changes_news(late, was_view) -%}
    {%- set horizons = highwater._horizons() -%}
    {%- set declaration = local_md5(tojson(horizons)) -%}
    {%- set news = {
        'before': [], 'statements': [], 'then': highwater._late_changes_gathered,
        'declaration': declaration, 'is_other': false,
    } -%}
    {%- set watermarks = highwater.gathered_watermarks('late_changes') -%}
    {%- if not horizons and not watermarks -%}
        {{ return(news) }}
    {%- endif -%}
    {%- if watermarks and declaration not in watermarks.values() | map(attribute='declaration') -%}
        {#- other days, other changes are late -#}
        {%- do news.before.append('delete from ' ~ late) -%}
        {%- do news.update({'is_other': true}) -%}
        {%- do highwater.forget_watermarks('late_changes') -%}
    {%- endif -%}
    {%- set parts = [] -%}
    {%- for part in highwater.ungathered_parts('late_changes') if part.table_name in horizons -%}
        {%- set rows = highwater.late_changes(part, horizons[part.table_name]) -%}
        {%- do parts.append({'where': [highwater.batches_of_part(part)], 'rows': rows}) -%}
    {%- endfor -%}
    {%- do news.statements.extend(highwater.statements_of_parts(parts)) -%}
    {{ return(news) }}
{%- endmacro -%}

{%- macro _late_changes_gathered(late, news) -%}
    {%- if news.statements or news.is_other -%}
        {%- do highwater.keep_watermarks_of_ledger('late_changes', news.declaration) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _horizons() -%}
    {%- set horizons = {} -%}
    {%- for table in highwater.tables_of_project() -%}
        {%- set days = highwater.entity_setting(table.entity, 'retention_days', {}).get('tombstones') -%}
        {%- if days -%}
            {%- do horizons.update({table.entity: days}) -%}
        {%- endif -%}
    {%- endfor -%}
    {{ return(horizons) }}
{%- endmacro -%}
