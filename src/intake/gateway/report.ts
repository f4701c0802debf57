import { randomUUID } from "node:crypto"
import { hostname } from "node:os"
import { Effect } from "effect"
import type { RefusingSource } from "../../cluster/gateway-reports.ts"
import { eraseGatewayReport, writeGatewayReport } from "../../cluster/gateway-reports.ts"
import { timers } from "../../time/timers.ts"
import type { Admission } from "./admission.ts"

/** Pause between reports, ms. */
export const reportMs = 5_000
/** How long the last words of a gateway are waited for, ms. */
const lastWordsMs = 1_000

/**
 * Says again and again how a gateway is, and which sources refuse, until the scope closes. What the
 * broker does not take is said the next time.
 */
export const reportGateway = Effect.fnUntraced(function* (
  admission: Pick<Admission, "underWay">,
  refusals: { readonly refusing: () => ReadonlyArray<RefusingSource> },
  everyMs: number
) {
  const [gateway, startedAt] = [randomUUID(), timers.wallMs()]
  const say = Effect.suspend(() => {
    const at = timers.wallMs()
    const refusing = refusals.refusing()
    const { underWay } = admission
    return writeGatewayReport({
      ...{ v: 1, gateway, host: hostname(), startedAt, at, underWay, refusing }
    })
  }).pipe(
    Effect.catch((error) => Effect.logDebug("the state of the gateway was not stored", error))
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(say, Effect.sleep(everyMs))))
  yield* Effect.addFinalizer(() =>
    Effect.ignore(Effect.timeoutOption(eraseGatewayReport(gateway), lastWordsMs))
  )
})
