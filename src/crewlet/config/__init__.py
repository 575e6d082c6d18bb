"""The two files that people write: read, checked, and settled into what a node and its company run with."""

from crewlet.config.company_loading import LoadedCompany, company_of, load_company
from crewlet.config.data_directory import prepare_data_directory
from crewlet.config.model_keys import models_without_keys
from crewlet.config.network_addresses import is_loopback
from crewlet.config.node_config import (
    ApiConfig,
    ApiToken,
    ClusterConfig,
    LoggingConfig,
    NodeAddress,
    NodeConfig,
    SatelliteConfig,
    StreamConfig,
    TlsConfig,
)
from crewlet.config.node_loading import LoadedNode, load_node_address, load_node_file, node_of
from crewlet.config.other_file import FileKind
from crewlet.config.schema import company_schema, node_schema
from crewlet.config.starter_files import STARTER_FILES, write_starter
from crewlet.config.starter_fleet import fleet_node_names, write_fleet
from crewlet.config.validate import Report, validate_file
from crewlet.config.variables import PYTHON_VARIABLE, Variables, references
from crewlet.config.yaml_source import Source, read_source, source_of

__all__ = [
    "PYTHON_VARIABLE",
    "STARTER_FILES",
    "ApiConfig",
    "ApiToken",
    "ClusterConfig",
    "FileKind",
    "LoadedCompany",
    "LoadedNode",
    "LoggingConfig",
    "NodeAddress",
    "NodeConfig",
    "Report",
    "SatelliteConfig",
    "Source",
    "StreamConfig",
    "TlsConfig",
    "Variables",
    "company_of",
    "company_schema",
    "fleet_node_names",
    "is_loopback",
    "load_company",
    "load_node_address",
    "load_node_file",
    "models_without_keys",
    "node_of",
    "node_schema",
    "prepare_data_directory",
    "read_source",
    "references",
    "source_of",
    "validate_file",
    "write_fleet",
    "write_starter",
]
