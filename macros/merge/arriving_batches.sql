{%- macro arriving_batches(entity, staged) -%}
    {%- set arriving = {
        'entity': entity, 'staged': [], 'log_batch': 1, 'rows': 0, 'standing': [],
    } -%}
    {%- if not execute -%}
        {{ return(arriving) }}
    {%- endif -%}
    {%- set marks = {} -%}
    {%- if is_incremental() -%}
        {%- for mark in run_query(
            'select feed, max(landing_batch), max(log_batch) from ' ~ this ~ ' group by feed'
        ).rows -%}
            {%- do marks.update({mark[0]: mark[1] | int}) -%}
            {%- do arriving.update({'log_batch': [arriving.log_batch, (mark[2] | int) + 1] | max}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- for relation in staged -%}
        {%- set feed = relation.identifier.removeprefix('stg_').split('__')[0] -%}
        {%- do arriving.staged.append({'relation': relation, 'mark': marks.get(feed, 0)}) -%}
    {%- endfor -%}
    {%- if is_incremental() -%}
        {%- for source in arriving.staged -%}
            {%- set count = run_query(
                'select count(*) from ' ~ source.relation ~ ' where landing_batch > ' ~ source.mark
            ).rows[0][0] | int -%}
            {%- do arriving.update({'rows': arriving.rows + count}) -%}
        {%- endfor -%}
        {%- if arriving.rows > 0 -%}
            {%- do arriving.update({'standing': _standing_relations(entity)}) -%}
        {%- endif -%}
    {%- endif -%}
    {{ return(arriving) }}
{%- endmacro -%}

{%- macro _standing_relations(entity) -%}
    {#- What there is: the merged table, and changes of this log that it has not taken in yet (after a kill). -#}
    {%- set merged = adapter.get_relation(this.database, this.schema, entity ~ '_merged') -%}
    {%- if not merged -%}
        {{ return([{'name': this, 'where': "verdict = 'applied'"}]) }}
    {%- endif -%}
    {%- set taken_in = (run_query('select max(log_batch) from ' ~ merged).rows[0][0] or 0) | int -%}
    {%- set standing = [{'name': merged, 'where': none}] -%}
    {%- set left = "verdict = 'applied' and log_batch > " ~ taken_in -%}
    {%- if run_query('select 1 from ' ~ this ~ ' where ' ~ left ~ ' limit 1').rows | length > 0 -%}
        {%- do standing.append({'name': this, 'where': left}) -%}
    {%- endif -%}
    {{ return(standing) }}
{%- endmacro -%}
