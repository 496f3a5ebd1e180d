{{ config(materialized='view') }}

{#- check_docs compares these codes with those that macros and readers write #}
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
        'Do what the detail says; compare what was found with docs/formats.md'
    ),
    (
        'wrong_column_count',
        'The record has another number of values than its file or table has columns',
        'Look at the file and line; a separator inside a value needs quotes and columns that came or went need a period'
    ),
    (
        'unknown_operation',
        'The operation is none that the format of the feed knows',
        'Of a truncate: declare truncates: true for the table, then: highwater replay TABLE; any other changes no row'
    ),
    (
        'unreadable_sequence',
        'The order at the source is absent or is no sequence of the declared form',
        'Declare the order of the feed (without positions, from Kafka, order: kafka), then: highwater replay TABLE'
    ),
    (
        'unreadable_commit_time',
        'The commit time is no number of milliseconds',
        'Look at the file and line and deliver the record with its time in a file under another name'
    ),
    (
        'value_does_not_fit',
        'A value does not fit the declared type of its column without loss',
        'Declare a type that holds it for the column, then: highwater rebuild TABLE --from raw'
    ),
    (
        'null_key',
        'A column of the key is NULL or absent',
        'Declare the key and its fields as the record has them, letter by letter, then: highwater replay TABLE'
    ),
    (
        'unknown_source',
        'The record comes from a source that the feed does not declare',
        'Orders of different sources cannot be compared; name the source in the epochs of the feed or add it to the key'
    ),
    (
        'partial_image',
        'The record carries only some columns and the table expects whole rows',
        'Declare partial_images: true for the table, then: highwater rebuild TABLE --from raw; or send whole rows'
    ),
    (
        'ignored',
        'An epoch of the feed says ignore: true of the record',
        'Nothing; to take it in after all remove the entry of epochs, then: highwater replay TABLE'
    )
        as reasons (rejection_reason, meaning, what_to_do)
