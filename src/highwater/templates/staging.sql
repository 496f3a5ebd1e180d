{{ highwater.<< macro >>(source('<< feed >>', '<< table >>'), '<< entity >>') }}
