"""Types of the fields that the server itself reads, by kind."""

from pytest_cre.embedded.kinds import ENDPOINTS, EVENT, JOB, LEASE, NODE, POD, SERVICE, Kind

# A shape is a Go type name for a leaf, a dict for a struct, a one-element list for a list of
# structs or leaves, or MAP for string maps. QUANTITIES are maps whose values may be numbers.
MAP = "map[string]string"
QUANTITIES = "quantities"
# Under this key a struct carries its Go name, which error messages show.
STRUCT = ""
Shape = str | dict[str, "Shape"] | list["Shape"]

_METADATA: dict[str, Shape] = {
    STRUCT: "ObjectMeta",
    "name": "string",
    "generateName": "string",
    "namespace": "string",
    "uid": "string",
    "resourceVersion": "string",
    "creationTimestamp": "string",
    "deletionTimestamp": "string",
    "labels": MAP,
    "annotations": MAP,
    "finalizers": ["string"],
    "ownerReferences": [
        {
            STRUCT: "OwnerReference",
            "apiVersion": "string",
            "kind": "string",
            "name": "string",
            "uid": "string",
            "controller": "bool",
            "blockOwnerDeletion": "bool",
        }
    ],
}
_CONTAINERS: Shape = [
    {
        STRUCT: "Container",
        "name": "string",
        "image": "string",
        "imagePullPolicy": "string",
        "command": ["string"],
        "args": ["string"],
        "env": [{STRUCT: "EnvVar", "name": "string", "value": "string", "valueFrom": {}}],
        "ports": [
            {
                STRUCT: "ContainerPort",
                "name": "string",
                "containerPort": "int32",
                "protocol": "string",
            }
        ],
        "resources": {STRUCT: "ResourceRequirements", "limits": QUANTITIES, "requests": QUANTITIES},
        "volumeMounts": [{STRUCT: "VolumeMount", "name": "string", "mountPath": "string"}],
        "terminationMessagePath": "string",
        "terminationMessagePolicy": "string",
    }
]
_EXPRESSIONS: Shape = [{"key": "string", "operator": "string", "values": ["string"]}]
_POD_SPEC: dict[str, Shape] = {
    STRUCT: "PodSpec",
    "containers": _CONTAINERS,
    "initContainers": _CONTAINERS,
    "nodeName": "string",
    "nodeSelector": MAP,
    "restartPolicy": "string",
    "schedulerName": "string",
    "serviceAccountName": "string",
    "hostname": "string",
    "subdomain": "string",
    "terminationGracePeriodSeconds": "int64",
    "activeDeadlineSeconds": "int64",
    "hostNetwork": "bool",
    "tolerations": [
        {
            STRUCT: "Toleration",
            "key": "string",
            "operator": "string",
            "value": "string",
            "effect": "string",
            "tolerationSeconds": "int64",
        }
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}
                ]
            }
        }
    },
    "schedulingGates": [{"name": "string"}],
    "volumes": [{STRUCT: "Volume", "name": "string", "configMap": {}, "secret": {}}],
    "overhead": QUANTITIES,
}
_CONDITIONS: Shape = [
    {"type": "string", "status": "string", "reason": "string", "message": "string"}
]
_CONTAINER_STATUSES: Shape = [
    {
        "name": "string",
        "restartCount": "int32",
        "ready": "bool",
        "state": {
            "waiting": {"reason": "string"},
            "running": {"startedAt": "string"},
            "terminated": {"exitCode": "int32", "signal": "int32", "reason": "string"},
        },
    }
]
_JOB_SPEC: dict[str, Shape] = {
    STRUCT: "JobSpec",
    "parallelism": "int32",
    "completions": "int32",
    "backoffLimit": "int32",
    "backoffLimitPerIndex": "int32",
    "maxFailedIndexes": "int32",
    "activeDeadlineSeconds": "int64",
    "ttlSecondsAfterFinished": "int32",
    "suspend": "bool",
    "manualSelector": "bool",
    "completionMode": "string",
    "podReplacementPolicy": "string",
    "selector": {STRUCT: "LabelSelector", "matchLabels": MAP, "matchExpressions": _EXPRESSIONS},
    "podFailurePolicy": {
        "rules": [
            {
                "action": "string",
                "onExitCodes": {
                    "containerName": "string",
                    "operator": "string",
                    "values": ["int32"],
                },
                "onPodConditions": [{"type": "string", "status": "string"}],
            }
        ]
    },
    "template": {STRUCT: "PodTemplateSpec", "metadata": _METADATA, "spec": _POD_SPEC},
}
SHAPES: dict[Kind, dict[str, Shape]] = {
    POD: {
        "metadata": _METADATA,
        "spec": _POD_SPEC,
        "status": {
            "phase": "string",
            "reason": "string",
            "message": "string",
            "conditions": _CONDITIONS,
            "containerStatuses": _CONTAINER_STATUSES,
            "initContainerStatuses": _CONTAINER_STATUSES,
        },
    },
    JOB: {"metadata": _METADATA, "spec": _JOB_SPEC, "status": {"conditions": _CONDITIONS}},
    NODE: {
        "metadata": _METADATA,
        "spec": {
            "unschedulable": "bool",
            "taints": [{"key": "string", "value": "string", "effect": "string"}],
        },
        "status": {
            "nodeInfo": MAP,
            "capacity": QUANTITIES,
            "allocatable": QUANTITIES,
            "conditions": _CONDITIONS,
            "addresses": [{"type": "string", "address": "string"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": "int32"}},
        },
    },
}
SHAPES[EVENT] = {
    "metadata": _METADATA,
    "involvedObject": {
        STRUCT: "ObjectReference",
        **dict.fromkeys(("kind", "namespace", "name", "uid", "apiVersion", "fieldPath"), "string"),
    },
    "series": {STRUCT: "EventSeries", "count": "int32", "lastObservedTime": "string"},
    "source": {STRUCT: "EventSource", "component": "string", "host": "string"},
    "count": "int32",
    **dict.fromkeys(
        (
            "reason",
            "message",
            "type",
            "firstTimestamp",
            "lastTimestamp",
            "eventTime",
            "reportingComponent",
            "reportingInstance",
        ),
        "string",
    ),
}
SHAPES[SERVICE] = {
    "metadata": _METADATA,
    "spec": {
        STRUCT: "ServiceSpec",
        "selector": MAP,
        "ports": [{STRUCT: "ServicePort", "name": "string", "port": "int32", "protocol": "string"}],
        "type": "string",
        "clusterIP": "string",
    },
}
SHAPES[LEASE] = {
    "metadata": _METADATA,
    "spec": {STRUCT: "LeaseSpec", "holderIdentity": "string", "renewTime": "string"},
}
SHAPES[ENDPOINTS] = {
    "metadata": _METADATA,
    "subsets": [
        {
            STRUCT: "EndpointSubset",
            "addresses": [{STRUCT: "EndpointAddress", "ip": "string"}],
            "ports": [{STRUCT: "EndpointPort", "port": "int32"}],
        }
    ],
}
OTHER_KINDS: dict[str, Shape] = {
    "metadata": _METADATA,
    "spec": {},
    "status": {},
    "data": MAP,
    "stringData": MAP,
    "binaryData": MAP,
    "type": "string",
    "secrets": [{}],
}
