"""What inductor, torch's compiler, is told: see ``OPTIONS``.

Imported only where something is compiled, since it takes seconds to import.
"""

from typing import Any

from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.codegen.simd_kernel_features import SIMDKernelFeatures
from torch._inductor.runtime.hints import ReductionHint
from torch._inductor.virtualized import V

LONGEST_ROW = 2048


class Choices(InductorChoices):
    """Inductor's heuristics, but a row of up to ``LONGEST_ROW`` numbers is read once.

    Its own limit is 1,024, above which a norm reads its row twice: at 1,600 in twice the time.
    """

    @staticmethod
    def should_use_persistent_reduction(
        features: SIMDKernelFeatures, cooperative_reduction: bool
    ) -> bool:
        if InductorChoices.should_use_persistent_reduction(features, cooperative_reduction):
            return True
        is_row = features.get_reduction_hint() is ReductionHint.INNER and not cooperative_reduction
        if not config.triton.persistent_reductions or not is_row:
            return False
        fits = V.graph.sizevars.statically_known_leq(features.reduction_numel, LONGEST_ROW)
        return bool(fits)

    def uuid(self) -> str:
        """What stands for this in the cache's key; for torch before 2.13 the class's name does."""
        return f"rows of {LONGEST_ROW}"


OPTIONS: dict[str, Any] = {
    "deterministic": True,  # no kernel is chosen by timing: ranks compute alike
    "fallback_random": True,  # torch's own dropout: inductor draws four numbers and keeps one
    "inductor_choices_class": Choices,
}
