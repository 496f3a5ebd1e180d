{{ highwater.export_rows(source('<< feed >>', '<< table >>'), '<< entity >>') }}
