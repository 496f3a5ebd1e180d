{{ config(materialized='view') }}

{#- check_docs compares these codes with those that macros and readers write; test_advice does what each advises #}
select
    rejection_reason,
    meaning,
    what_to_do
from
    values
    (
        'not_utf8',
        'The bytes of the record are no UTF-8 text',
        'Deliver the record in UTF-8 in a file under another name; its exact bytes are in the column record'
    ),
    (
        'malformed_record',
        'The record cannot be parsed in the format of its feed',
        'Look at the file and line and deliver the record whole in a file under another name'
    ),
    (
        'unknown_form',
        'The record is whole and is none that the format of the feed knows how to read',
        'Do what the detail says; where it names a setting of the feed, then: highwater replay TABLE'
    ),
    (
        'wrong_column_count',
        'The record has another number of values than its file or table has columns',
        'Columns that came or went: declare their period, then: highwater rebuild TABLE --from raw; a separator inside '
        || 'a value: deliver the record with quotes in a file under another name'
    ),
    (
        'unknown_operation',
        'The operation is none that the format of the feed knows',
        'Of a truncate: declare truncates: true for the table, then: highwater replay TABLE; any other changes no row'
    ),
    (
        'unreadable_sequence',
        'The order at the source is absent or is no sequence of the declared form',
        'Declare the order of the feed (without positions, from Kafka, order: kafka), then: highwater replay TABLE; '
        || 'one that is damaged: deliver it whole in a file under another name'
    ),
    (
        'unreadable_commit_time',
        'The commit time cannot be read in the format of the feed',
        'Look at the file and line and deliver the record with its time in a file under another name'
    ),
    (
        'value_does_not_fit',
        'A value does not fit the declared type of its column without loss',
        'A type that holds it: highwater alter TABLE type COLUMN TYPE; a unit: highwater alter TABLE unit COLUMN UNIT; '
        || 'a setting of the feed that the detail names: declare it, then: highwater replay TABLE; a wrong value: '
        || 'deliver the record with the right one in a file under another name'
    ),
    (
        'null_key',
        'A column of the key is NULL or absent',
        'The key in another field, letter by letter: highwater alter TABLE rename COLUMN FIELD; no key at all: deliver '
        || 'the record with it in a file under another name'
    ),
    (
        'unknown_source',
        'The record comes from a source that the feed does not declare',
        'After a failover: append the source to the epochs of the feed, then: highwater replay TABLE; sources that '
        || 'write at once cannot be compared, and need the source in the key'
    ),
    (
        'partial_image',
        'The record carries only some columns and the table expects whole rows',
        'Declare partial_images: true for the table, then: highwater rebuild TABLE --from raw; or send whole rows'
    ),
    (
        'truncated_shard',
        'One shard was truncated, and a truncate of the table would hide the rows of the others',
        'Deliver a delete of each row of that shard, at the position of the truncate; until then they stay'
    ),
    (
        'ignored',
        'An epoch of the feed says ignore: true of the record',
        'Nothing; to take it in after all remove the entry of epochs, then: highwater replay TABLE'
    )
        as reasons (rejection_reason, meaning, what_to_do)
