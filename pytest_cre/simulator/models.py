"""The GPU nodes that scenarios name: built from published figures, where there are any.

Bus bandwidths are all-reduce ones at the largest messages. Where no training of an architecture is
published, its throughput is that part of its peak that an H100 reaches: 540 of 989 TFLOP/s.
"""

from collections.abc import Mapping

from pytest_cre.simulator.hardware import GpuModel

MODELS: Mapping[str, GpuModel] = {
    "a100": GpuModel(
        product="NVIDIA-A100-SXM4-80GB",
        device="NVIDIA A100-SXM4-80GB",
        gpus_per_node=8,
        memory_gib=2048,
        nvlink_busbw_gbs=235.0,  # stas00/ml-engineering network/README.md: 234.9
        nvlink_latency_us=43.0,  # ND_A100_v4_results.md of Azure/AI-benchmarking-guide: 36.2 at 1 MiB
        network_gbs=25.0,  # one 200 Gb/s adapter per GPU
        network_latency_us=60.0,
        network="IB",
        tflops_per_gpu=170.0,  # by its peak of 312
        step_time_s=0.06,
    ),
    "b200": GpuModel(
        product="NVIDIA-B200",
        device="NVIDIA B200",
        gpus_per_node=8,
        memory_gib=2048,
        nvlink_busbw_gbs=845.0,  # stas00/ml-engineering network/README.md: 845.7 on p6-b200
        nvlink_latency_us=48.0,  # the same: 36.1 at 1 MiB
        network_gbs=42.8,  # the same: 381.8 of four nodes leave so much of 50
        network_latency_us=60.0,
        network="EFA",
        # Megatron-Bridge: 1576 where a GB200 reaches 1622, taken of that one's 1185.
        tflops_per_gpu=1150.0,
        step_time_s=0.05,
    ),
    "b300": GpuModel(
        product="NVIDIA-B300-SXM6-AC",
        device="NVIDIA B300 SXM6 AC",
        gpus_per_node=8,
        memory_gib=2048,
        nvlink_busbw_gbs=845.0,  # nothing is published; a B200's NVLink
        nvlink_latency_us=48.0,
        network_gbs=100.0,  # one 800 Gb/s adapter per GPU
        network_latency_us=60.0,
        network="IB",
        tflops_per_gpu=1320.0,  # Megatron-Bridge: 831 where a B200 reaches 726
        step_time_s=0.05,
    ),
    "gb200": GpuModel(
        product="NVIDIA-GB200",
        device="NVIDIA GB200",
        gpus_per_node=4,
        memory_gib=960,
        nvlink_busbw_gbs=930.0,  # upstream demands 900 of a healthy rack; 883 is published of four nodes
        nvlink_latency_us=30.0,
        network_gbs=50.0,
        network_latency_us=60.0,
        network="IB",
        tflops_per_gpu=1185.0,
        step_time_s=0.05,
    ),
    "gb300": GpuModel(
        product="NVIDIA-GB300",
        device="NVIDIA GB300",
        gpus_per_node=4,
        memory_gib=960,
        nvlink_busbw_gbs=932.0,  # cluster-readiness-engine README.md: 932.1 of sixteen nodes
        nvlink_latency_us=30.0,
        # validation-results.md of the same: 376 of eight nodes without NVLink between them
        network_gbs=98.0,
        network_latency_us=60.0,
        network="RoCE",
        tflops_per_gpu=1388.0,  # the same: 1388.5
        step_time_s=0.05,
    ),
    "h100": GpuModel(
        product="NVIDIA-H100-80GB-HBM3",
        device="NVIDIA H100 80GB HBM3",
        gpus_per_node=8,
        memory_gib=2048,
        nvlink_busbw_gbs=480.0,
        nvlink_latency_us=28.0,
        network_gbs=50.0,
        network_latency_us=60.0,
        network="IB",
        tflops_per_gpu=540.0,
        step_time_s=0.06,
    ),
    "h200": GpuModel(
        product="NVIDIA-H200",
        device="NVIDIA H200",
        gpus_per_node=8,
        memory_gib=2048,
        nvlink_busbw_gbs=482.0,  # stas00/ml-engineering network/README.md: 482.3
        nvlink_latency_us=30.0,  # ND_H200_v5_results.md of Azure/AI-benchmarking-guide: 53.0 at 1 MiB
        network_gbs=40.9,  # stas00: 364.9 of four nodes p5en
        network_latency_us=60.0,
        network="EFA",
        tflops_per_gpu=540.0,  # the peak of an H100
        step_time_s=0.06,
    ),
    # PCIe cards: what is called NVLink goes over PCIe, of whose line rate they reach three quarters.
    "l40": GpuModel(
        product="NVIDIA-L40",
        device="NVIDIA L40",
        gpus_per_node=8,
        memory_gib=1024,
        nvlink_busbw_gbs=24.0,  # nothing is published; PCIe 4.0 x16 carries 32
        nvlink_latency_us=40.0,
        network_gbs=24.0,
        network_latency_us=60.0,
        network="RoCE",
        tflops_per_gpu=99.0,  # by its peak of 181
        step_time_s=0.06,
        nics=4,
    ),
    "l40s": GpuModel(
        product="NVIDIA-L40S",
        device="NVIDIA L40S",
        gpus_per_node=8,
        memory_gib=1024,
        nvlink_busbw_gbs=24.0,  # nothing is published; PCIe 4.0 x16 carries 32
        nvlink_latency_us=40.0,
        network_gbs=24.0,
        network_latency_us=60.0,
        network="RoCE",
        tflops_per_gpu=198.0,  # by its peak of 362
        step_time_s=0.06,
    ),
    "rtxpro6000": GpuModel(
        product="NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
        device="NVIDIA RTX PRO 6000 Blackwell Server Edition",
        gpus_per_node=8,
        memory_gib=1024,
        # oci-hpc-oke recommended-nccl-rccl-parameters-by-shape.md: 34 of two to four nodes
        nvlink_busbw_gbs=38.0,
        nvlink_latency_us=40.0,
        network_gbs=25.0,
        network_latency_us=60.0,
        network="RoCE",
        tflops_per_gpu=273.0,  # by its peak of 500
        step_time_s=0.06,
    ),
}
