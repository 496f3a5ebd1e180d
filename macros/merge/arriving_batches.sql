{%- macro arriving_batches(entity, staged) -%}
    {%- set arriving = {
        'entity': entity, 'staged': [], 'log_batch': 1, 'rows': 0, 'standing': [], 'truncates': [], 'resyncs': [],
    } -%}
    {%- if not execute -%}
        {{ return(arriving) }}
    {%- endif -%}
    {%- set marks = {} -%}
    {%- if is_incremental() -%}
        {%- do _refuse_other_types(entity) -%}
        {%- for mark in run_query(
            'select feed, max(landing_batch), max(log_batch) from ' ~ this ~ ' group by feed'
        ).rows -%}
            {%- do marks.update({mark[0]: mark[1] | int}) -%}
            {%- do arriving.update({'log_batch': [arriving.log_batch, (mark[2] | int) + 1] | max}) -%}
        {%- endfor -%}
    {%- endif -%}
    {%- for relation in staged -%}
        {%- set feed = relation.identifier.removeprefix('stg_').split('__')[0] -%}
        {%- do arriving.staged.append({'relation': relation, 'feed': feed, 'mark': marks.get(feed, 0)}) -%}
    {%- endfor -%}
    {%- set truncates = entity_setting(entity, 'truncates', false) -%}
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
    {%- if truncates and (arriving.rows > 0 or not is_incremental()) -%}
        {%- do _find_truncates(arriving) -%}
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

{%- macro _find_truncates(arriving) -%}
    {#- The truncates that stand and those that arrive, as literals for the SQL: there are few, and every row asks. -#}
    {%- for relation in arriving.standing -%}
        {%- set sequence = run_query(
            "select max(change_sequence_number) from " ~ relation.name ~ " where change_type = 'truncate' and "
            ~ (relation.where or 'is_pending')
        ).rows[0][0] -%}
        {%- if sequence -%}
            {%- do arriving.truncates.append({'sequence': sequence, 'landed_at': none}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for source in arriving.staged -%}
        {%- set epochs = feed_setting(source.feed, 'epochs', []) -%}
        {%- for batch in run_query(
            "select landing_batch, unix_micros(landed_at), "
            ~ "max(case when change_type = 'truncate' then change_sequence_number end), "
            ~ "max(conv(substr(change_sequence_number, 1, 16), 16, 10)) "
            ~ "from " ~ source.relation ~ " where landing_batch > " ~ source.mark ~ " and rejection_reason is null "
            ~ "group by landing_batch, landed_at order by landing_batch"
        ).rows -%}
            {%- if batch[2] -%}
                {%- do arriving.truncates.append({'sequence': batch[2], 'landed_at': batch[1]}) -%}
            {%- endif -%}
            {%- for epoch in epochs[:batch[3] | int] if epoch.get('resync') -%}
                {#- a new baseline has begun: what it does not hold is gone -#}
                {%- set number = epochs.index(epoch) + 1 -%}
                {%- set start = '%016x' % number -%}
                {%- if start not in arriving.truncates | map(attribute='sequence') -%}
                    {%- do arriving.truncates.append({'sequence': start, 'landed_at': batch[1]}) -%}
                    {%- do arriving.resyncs.append({
                        'feed': source.feed, 'epoch': number, 'sequence': start,
                        'landing_batch': batch[0], 'landed_at': batch[1],
                    }) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}

{%- macro _refuse_other_types(entity) -%}
    {#- An insert would cast to the type that the table has, and cut what does not fit it. -#}
    {%- set declared = {} -%}
    {%- for column in entity_columns(entity) -%}
        {%- do declared.update({column.name: column.data_type | replace(' ', '')}) -%}
    {%- endfor -%}
    {%- for relation in [this, adapter.get_relation(this.database, this.schema, entity ~ '_merged')] if relation -%}
        {%- for column in adapter.get_columns_in_relation(relation)
            if column.name in declared and column.dtype | lower | replace(' ', '') != declared[column.name] -%}
            {{ exceptions.raise_compiler_error(
                relation ~ " has " ~ column.name ~ " as " ~ column.dtype ~ ", and it is declared as "
                ~ declared[column.name] ~ ". Nothing was taken in. Declare the old type again, or widen the column of the "
                ~ "log and the merged table first: alter table … set tblproperties ('delta.enableTypeWidening' = 'true'), "
                ~ "then alter table … alter column " ~ column.name ~ " type " ~ declared[column.name] ~ "."
            ) }}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}
