{{ highwater.change_log('contacts', [
    ref('stg_datastream_crm__contacts_changes'),
]) }}
