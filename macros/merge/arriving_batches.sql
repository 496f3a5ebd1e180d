{%- macro arriving_batches(entity, staged) -%}
    {%- set arriving = {
        'entity': entity, 'staged': [], 'log_batch': 1, 'rows': 0, 'ends': [],
        'current': [], 'truncates': [], 'resyncs': [],
    } -%}
    {%- set rebuilt = var('rebuilt', {}) -%}
    {%- if rebuilt.get('entity') == entity -%}
        {#- `highwater rebuild --from raw` makes the new log beside the old one -#}
        {%- do config(schema='rebuilt') -%}
        {%- do arriving.update({'log_batch': rebuilt.log_batch}) -%}
    {%- endif -%}
    {%- if not execute -%}
        {{ return(arriving) }}
    {%- endif -%}
    {%- for relation in staged -%}
        {%- set feed = relation.identifier.removeprefix('stg_').split('__')[0] -%}
        {%- do arriving.staged.append({
            'relation': relation, 'feed': feed, 'watermark': 0, 'may_hold_baseline': highwater.may_hold_baseline(feed),
            'may_fall': highwater.may_fall(entity, feed),
            'table': graph.nodes['model.' ~ project_name ~ '.' ~ relation.identifier].sources | map(attribute=1) | first | default(none),
        }) -%}
        {%- do arriving.staged[-1].update({'shard': highwater.shard_column(feed, arriving.staged[-1].table, entity)}) -%}
    {%- endfor -%}
    {%- if not is_incremental() and not rebuilt and highwater.entity_key(entity) -%}
        {%- set merged = adapter.get_relation(this.database, this.schema, entity ~ '_merged') -%}
        {%- do highwater._number_above(arriving, merged, highwater.newest_log_batch(merged) if merged else 0) -%}
        {%- do highwater._number_above_history(arriving) -%}
    {%- endif -%}
    {%- set facts = highwater.facts_of_table(entity) if is_incremental() else {} -%}
    {%- if is_incremental() -%}
        {%- do highwater._find_watermarks(arriving, facts) -%}
    {%- endif -%}
    {%- set truncates = highwater.entity_setting(entity, 'truncates', false) -%}
    {%- if (not truncates or arriving.staged | selectattr('shard') | list) and highwater.entity_key(entity) -%}
        {%- do highwater._refuse_resyncs(arriving, truncates) -%}
    {%- endif -%}
    {%- set is_partial = highwater.entity_setting(entity, 'partial_images', false) -%}
    {%- set may_wait = arriving.staged | selectattr('may_hold_baseline') | list + arriving.staged | selectattr('may_fall') | list -%}
    {%- if is_incremental() or truncates or is_partial or rebuilt or may_wait -%}
        {%- do highwater._count_batches(arriving, truncates, is_partial, rebuilt.get('upto', {})) -%}
    {%- endif -%}
    {%- if is_incremental() and not env_var('HIGHWATER_COLUMNS', '') -%}
        {#- `highwater build` has met what differs before it starts dbt -#}
        {%- do highwater._refuse_other_columns(arriving) -%}
    {%- endif -%}
    {%- if is_incremental() and arriving.rows > 0 -%}
        {%- do arriving.update({'current': highwater._current_relations(arriving, facts)}) -%}
    {%- endif -%}
    {%- if arriving.rows > 0 -%}
        {%- do highwater._leave_what_falls(arriving) -%}
    {%- endif -%}
    {%- if truncates and arriving.rows > 0 -%}
        {%- do highwater._find_truncates(arriving) -%}
    {%- endif -%}
    {%- if (not is_incremental() or arriving.rows > 0) and not rebuilt -%}
        {#- `highwater build` listens: it notes what is to be told of a batch before the batch is there, so no response can say it -#}
        {%- set watermarks = {} -%}
        {%- for source in arriving.staged -%}
            {%- do watermarks.update({source.feed: source.watermark}) -%}
        {%- endfor -%}
        {%- do highwater.hand_over('appends', {'entity': entity, 'log_batch': arriving.log_batch, 'behind': watermarks}) -%}
    {%- endif -%}
    {%- do highwater.handed_on().update({'numbered': {'column': 'log_batch', 'number': arriving.log_batch}}) -%}
    {%- if is_incremental() -%}
        {%- do facts.update({'arrived': highwater._facts_when_written(arriving, facts)}) -%}
    {%- elif arriving.rows > 0 and arriving.log_batch == 1 and highwater.entity_key(entity) and not rebuilt -%}
        {#- nothing was there before -#}
        {%- set nothing = {'log_batch': 0, 'feeds': {}, 'rows': 0, 'applied': 0, 'held': 0, 'highest': '', 'history': 0} -%}
        {%- do highwater.facts_of_table(entity).update(nothing, arrived=highwater._facts_when_written(arriving, nothing)) -%}
    {%- endif -%}
    {{ return(arriving) }}
{%- endmacro -%}

{%- macro _facts_when_written(arriving, facts) -%}
    {%- set feeds = dict(facts.feeds) -%}
    {%- for source in arriving.staged -%}
        {%- do feeds.update({source.feed: source.newest}) -%}
    {%- endfor -%}
    {%- if not arriving.rows -%}
        {{ return({'feeds': feeds}) }}
    {%- endif -%}
    {%- set highest = arriving.ends | map(attribute='highest') | reject('none') | list + [facts.highest | default('', true)] -%}
    {{ return({
        'feeds': feeds, 'log_batch': arriving.log_batch, 'arrived_rows': arriving.rows, 'since': facts.log_batch,
        'ends': highwater.ends_of_rows(arriving.entity, arriving.ends), 'compared': arriving.current | length > 0,
        'highest': highest | max(case_sensitive=true) if facts.highest is not none else none,
    }) }}
{%- endmacro -%}

{%- macro _number_above_history(arriving) -%}
    {#- It applies what is superseded too, so it may have seen a batch that the merged table has not. -#}
    {%- set history = highwater._history(arriving.entity) -%}
    {%- if history -%}
        {%- do highwater._number_above(arriving, history, highwater.newest_log_batch(history)) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _history(entity) -%}
    {%- set node = graph.nodes.get('model.' ~ project_name ~ '.' ~ entity ~ '_history') -%}
    {{ return(adapter.get_relation(none, node.schema, node.alias) if node and node.config.get('meta', {}).get('history') else none) }}
{%- endmacro -%}

{%- macro _number_above(arriving, relation, applied_batch) -%}
    {#- The log went back or is gone: a number that others have seen must not come again, they would not apply it. -#}
    {%- if applied_batch >= arriving.log_batch -%}
        {%- do log(
            'warning: ' ~ this.identifier ~ ' has up to batch ' ~ (arriving.log_batch - 1) ~ ', and ' ~ relation.identifier
            ~ ' has applied batch ' ~ applied_batch ~ ': the log went back. What raw has behind it is classified again, as batch '
            ~ (applied_batch + 1) ~ '.', info=true
        ) -%}
        {%- do arriving.update({'log_batch': applied_batch + 1}) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _find_watermarks(arriving, facts) -%}
    {%- if not facts -%}
        {%- do facts.update(highwater._facts_of_layers(arriving)) -%}
    {%- endif -%}
    {%- set others = arriving.staged | map(attribute='feed') | reject('in', facts.feeds.keys() | list) | list -%}
    {%- if others -%}
        {%- do facts.feeds.update(highwater._newest_of_feeds("feed in ('" ~ others | join("', '") ~ "')")) -%}
    {%- endif -%}
    {%- for source in arriving.staged -%}
        {%- do source.update({'watermark': facts.feeds.get(source.feed, 0)}) -%}
    {%- endfor -%}
    {%- do arriving.update({'log_batch': facts.log_batch + 1}) -%}
{%- endmacro -%}

{%- macro _facts_of_layers(arriving) -%}
    {#- One question, which Delta answers by what it keeps of each file. A log grows without end: what is read of it is its
        newest batch, and for feeds that are not in it their files. -#}
    {%- set merged = adapter.get_relation(this.database, this.schema, arriving.entity ~ '_merged') -%}
    {%- set history = highwater._history(arriving.entity) -%}
    {%- set questions = ['(select max(log_batch) as log_batch from ' ~ this ~ ')'] -%}
    {%- if merged -%}
        {%- do questions.append('(select count(*) as row_count, max(log_batch) as applied from ' ~ merged ~ ')') -%}
    {%- endif -%}
    {%- if history -%}
        {%- do questions.append('(select max(log_batch) as in_history from ' ~ history ~ ')') -%}
    {%- endif -%}
    {%- set found = run_query('select * from ' ~ questions | join(' cross join ')).rows[0] -%}
    {%- set log_batch = (found.log_batch or 0) | int -%}
    {%- set applied = (found.applied or 0) | int if merged else 0 -%}
    {{ return({
        'log_batch': log_batch, 'feeds': highwater._newest_of_feeds('log_batch >= ' ~ log_batch),
        'rows': found.row_count | int if merged else 0, 'applied': applied, 'held': applied if merged else none,
        'history': (found.in_history or 0) | int if history else 0, 'highest': none,
    }) }}
{%- endmacro -%}

{%- macro _newest_of_feeds(where) -%}
    {%- set newest = {} -%}
    {%- for row in run_query(
        'select feed, max(landing_batch) as landing_batch from ' ~ this ~ ' where ' ~ where ~ ' group by feed'
    ).rows -%}
        {%- do newest.update({row.feed: row.landing_batch | int}) -%}
    {%- endfor -%}
    {{ return(newest) }}
{%- endmacro -%}

{%- macro _count_batches(arriving, truncates, is_partial, upto) -%}
    {%- for source in arriving.staged -%}
        {#- what is counted, and how counts of parts of a batch become one -#}
        {%- set counts = [
            ['count(*)', 'records', 'sum'],
            ['min(change_sequence_number) filter (where rejection_reason is null)', 'lowest', 'min'],
            ['max(change_sequence_number) filter (where rejection_reason is null)', 'highest', 'max'],
        ] -%}
        {%- if truncates -%}
            {%- do counts.extend([
                ["max(change_sequence_number) filter (where rejection_reason is null and change_type = 'truncate')", 'truncate', 'max'],
                ['max(cast(conv(substr(change_sequence_number, 1, 16), 16, 10) as int)) filter (where rejection_reason is null)', 'epoch', 'max'],
            ]) -%}
        {%- endif -%}
        {%- if is_partial -%}
            {%- do counts.append(['count_if(present_columns is not null)', 'partial_rows', 'sum']) -%}
        {%- endif -%}
        {%- if source.may_hold_baseline and highwater.entity_key(arriving.entity) -%}
            {%- do counts.append(['count_if(' ~ highwater.is_undeclared_baseline() ~ ')', 'baseline_rows', 'sum']) -%}
        {%- endif -%}
        {%- for end in highwater.key_ends(arriving.entity) -%}
            {%- set count, name = end.split(' as `') -%}
            {%- do counts.append([count, name[:-1], count[:3]]) -%}
        {%- endfor -%}
        {%- set where = 'landing_batch > ' ~ source.watermark
            ~ (' and landing_batch <= ' ~ upto[source.feed] if source.feed in upto else '') -%}
        {%- do source.update({'batches': run_query(
            highwater._counts_by_second(source, counts, where) if source.may_fall else highwater._counts(source.relation, counts, where)
        ).rows}) -%}
    {%- endfor -%}
    {%- do highwater._leave_what_waits(arriving) -%}
    {%- do highwater._take(arriving) -%}
{%- endmacro -%}

{%- macro _counts(relation, counts, where) -%}
    select
        landing_batch,
        unix_micros(landed_at) as landed_at
        {%- for count, name, fold in counts %},
        {{ count }} as `{{ name }}`
        {%- endfor %}
    from {{ relation }}
    where {{ where }}
    group by landing_batch, landed_at
    order by landing_batch
{%- endmacro -%}

{%- macro _counts_by_second(source, counts, where) -%}
    {#- Of each second of the source's clock its positions: where those of a later second are lower, more is asked. -#}
    {%- set is_timed = 'rejection_reason is null and ' ~ highwater.is_timed_change(source.feed) -%}
    {#- the table may have a column of any name, also the one that is given to this -#}
    {%- set second = 'case when rejection_reason is null then unix_seconds(changed_at) end' -%}
    select
        landing_batch,
        unix_micros(landed_at) as landed_at,
        coalesce(bool_or(`lowest timed` < `highest before`), false) as is_falling
        {%- for count, name, fold in counts %},
        {{ fold }}(`{{ name }}`) as `{{ name }}`
        {%- endfor %}
    from (
        select
            *,
            max(`highest timed`) over (order by second range between unbounded preceding and 3 preceding) as `highest before`
        from (
            select
                landing_batch,
                landed_at,
                {{ second }} as second,
                min(change_sequence_number) filter (where {{ is_timed }}) as `lowest timed`,
                max(change_sequence_number) filter (where rejection_reason is null and changed_at is not null) as `highest timed`
                {%- for count, name, fold in counts %},
                {{ count }} as `{{ name }}`
                {%- endfor %}
            from {{ source.relation }}
            where {{ where }}
            group by landing_batch, landed_at, {{ second }}
        )
    )
    group by landing_batch, landed_at
    order by landing_batch
{%- endmacro -%}

{%- macro _take(arriving) -%}
    {%- do arriving.update({'rows': 0, 'ends': []}) -%}
    {%- for source in arriving.staged -%}
        {%- set batches = source.batches -%}
        {%- do source.update({'newest': batches | map(attribute='landing_batch') | map('int') | max | default(source.watermark)}) -%}
        {%- do arriving.update({'rows': arriving.rows + batches | map(attribute='records') | map('int') | sum}) -%}
        {%- do arriving.ends.extend(batches) -%}
    {%- endfor -%}
{%- endmacro -%}

{%- macro _leave_what_waits(arriving) -%}
    {#- A further full load may begin an epoch, to which later changes would belong as well: nothing that landed with it or behind it is classified. -#}
    {%- set since = [] -%}
    {%- for source in arriving.staged -%}
        {%- set later = highwater.later_baselines(arriving, source) -%}
        {%- if later -%}
            {%- do since.append(later[0].landed_at | int) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- do highwater._leave_what_landed_since(arriving, since) -%}
{%- endmacro -%}

{%- macro _leave_what_falls(arriving) -%}
    {#- Positions that fall are met where a batch is not above all there is, or not in order itself. -#}
    {%- set since = [] -%}
    {%- for source in arriving.staged if source.may_fall and source.batches -%}
        {%- if arriving.current or source.batches | selectattr('is_falling') | list -%}
            {%- set fall = highwater.falling_positions(arriving, source) -%}
            {%- if fall -%}
                {%- do since.append(fall.landed_at) -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if since -%}
        {%- do highwater._leave_what_landed_since(arriving, since) -%}
        {%- do highwater._take(arriving) -%}
    {%- endif -%}
{%- endmacro -%}

{%- macro _leave_what_landed_since(arriving, since) -%}
    {#- since: in microseconds -#}
    {%- for source in arriving.staged if since -%}
        {%- do source.update({'batches': source.batches | selectattr('landed_at', 'lt', since | min) | list}) -%}
    {%- endfor -%}
{%- endmacro -%}

{%- macro _current_relations(arriving, facts) -%}
    {#- What there is: the base, and what is pending in this log. -#}
    {%- set merged = adapter.get_relation(this.database, this.schema, arriving.entity ~ '_merged') -%}
    {%- if not merged -%}
        {{ return([{'name': this, 'where': "verdict = 'applied'"}]) }}
    {%- endif -%}
    {%- do highwater._number_above(arriving, merged, facts.applied) -%}
    {%- if facts.history -%}
        {%- do highwater._number_above(arriving, highwater._history(arriving.entity), facts.history) -%}
    {%- endif -%}
    {%- set current = [{'name': merged, 'where': none}] -%}
    {%- if facts.log_batch > facts.applied -%}
        {%- do current.append({'name': this, 'where': "verdict = 'applied' and log_batch > " ~ facts.applied}) -%}
    {%- endif -%}
    {{ return(current if highwater._may_be_beaten(arriving, current, facts) else []) }}
{%- endmacro -%}

{%- macro _may_be_beaten(arriving, current, facts) -%}
    {#- What comes in order is above everything there is, whose files are skipped by that: then no key is looked up. -#}
    {%- set lowest = arriving.ends | map(attribute='lowest') | reject('none') | min(case_sensitive=true) -%}
    {#- where rows never change the one that came first stays, whatever its sequence -#}
    {%- if highwater.entity_setting(arriving.entity, 'insert_only', false) or lowest is not defined -%}
        {{ return(true) }}
    {%- endif -%}
    {%- if facts.highest is none -%}
        {%- set above = [] -%}
        {%- for relation in current -%}
            {%- do above.append(
                'select change_sequence_number from ' ~ relation.name ~ " where change_sequence_number >= '" ~ lowest ~ "'"
                ~ (' and ' ~ relation.where if relation.where else '')
            ) -%}
        {%- endfor -%}
        {%- do facts.update({
            'highest': run_query('select max(change_sequence_number) from (' ~ above | join(' union all ') ~ ')').rows[0][0] or ''
        }) -%}
    {%- endif -%}
    {{ return(facts.highest >= lowest) }}
{%- endmacro -%}

{%- macro _find_truncates(arriving) -%}
    {#- The current truncates and those that arrive, as literals for the SQL: there are few, and every row is compared with them. -#}
    {%- for relation in arriving.current -%}
        {%- set sequence = run_query(
            "select max(change_sequence_number) from " ~ relation.name ~ " where change_type = 'truncate' and "
            ~ (relation.where or highwater.is_truncate(highwater.entity_key(arriving.entity)))
        ).rows[0][0] -%}
        {%- if sequence -%}
            {%- do arriving.truncates.append({'sequence': sequence, 'landed_at': none}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- for source in arriving.staged -%}
        {%- set epochs = highwater.epochs_of_feed(source.feed) -%}
        {%- for batch in source.batches -%}
            {%- if batch.truncate -%}
                {%- do arriving.truncates.append({'sequence': batch.truncate, 'landed_at': batch.landed_at}) -%}
            {%- endif -%}
            {%- for epoch in epochs if epoch.number <= (batch.epoch or 0) | int and epoch.entry.get('resync') and epoch.entry.get('table', source.table) == source.table -%}
                {#- a new baseline has begun: what it does not hold is gone -#}
                {%- set start = '%016x' % epoch.number -%}
                {%- if start not in arriving.truncates | map(attribute='sequence') -%}
                    {%- do arriving.truncates.append({'sequence': start, 'landed_at': batch.landed_at}) -%}
                    {%- do arriving.resyncs.append({
                        'feed': source.feed, 'epoch': epoch.number, 'sequence': start,
                        'landing_batch': batch.landing_batch, 'landed_at': batch.landed_at,
                    }) -%}
                {%- endif -%}
            {%- endfor -%}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}

{%- macro _refuse_resyncs(arriving, truncates) -%}
    {%- for source in arriving.staged if source.shard or not truncates -%}
        {%- for epoch in highwater.epochs_of_feed(source.feed) if epoch.entry.get('resync') and epoch.entry.get('table', source.table) == source.table -%}
            {%- if source.shard -%}
                {{ exceptions.raise_compiler_error(
                    "epoch " ~ epoch.number ~ " of the feed " ~ source.feed ~ " says `resync: true`, and " ~ arriving.entity
                    ~ " has several shards: rows of every shard that the new baseline lacks would be gone. Take `resync` out; "
                    ~ "rows that a shard has lost go when a delete of each is delivered."
                ) }}
            {%- endif -%}
            {{ exceptions.raise_compiler_error(
                "epoch " ~ epoch.number ~ " of the feed " ~ source.feed ~ " says `resync: true`, so rows that it lacks are gone from "
                ~ arriving.entity ~ ", which must declare `truncates: true` for that, beside its key in the YAML of "
                ~ arriving.entity ~ "_changes. An epoch of another table says `table:`."
            ) }}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}

{%- macro _refuse_other_columns(arriving) -%}
    {#- A log must not take in what it has no column for; and an insert would cast to the type that it has, and cut what does not fit. -#}
    {%- set declared = {} -%}
    {%- for column in highwater.entity_columns(arriving.entity) -%}
        {%- do declared.update({column.name: column.data_type | replace(' ', '')}) -%}
    {%- endfor -%}
    {%- for relation in [this, adapter.get_relation(this.database, this.schema, arriving.entity ~ '_merged')] if relation -%}
        {%- set there = {} -%}
        {%- for column in adapter.get_columns_in_relation(relation) -%}
            {%- do there.update({column.name: column.dtype | lower | replace(' ', '')}) -%}
        {%- endfor -%}
        {%- for name in declared if there and name not in there -%}
            {{ exceptions.raise_compiler_error(
                relation ~ " has no column " ~ name ~ ", and it is declared. Nothing was applied. Run: highwater build. It adds "
                ~ "the column, and fills it from the records that have landed."
            ) }}
        {%- endfor -%}
        {%- for name in declared if name in there and there[name] != declared[name] -%}
            {{ exceptions.raise_compiler_error(
                relation ~ " has " ~ name ~ " as " ~ there[name] ~ ", and it is declared as " ~ declared[name]
                ~ ". Nothing was applied. Run: highwater build. It widens the column, or says what to do where that cannot be. "
                ~ "To leave the tables as they are, declare the old type again."
            ) }}
        {%- endfor -%}
    {%- endfor -%}
{%- endmacro -%}
