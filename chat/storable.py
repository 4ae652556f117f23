from retrieval.storable import is_storable as is_storable
from retrieval.storable import storable as storable
from retrieval.storable import storable_value as storable_value
