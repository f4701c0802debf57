import { Effect } from "effect"
import { Broker } from "../../broker/broker.ts"
import { compareSources } from "../../broker/sources/comparison.ts"
import { divergenceText } from "../../broker/sources/divergence.ts"
import { copyingStreams } from "../../broker/sources/record.ts"
import type { AuditProblem } from "./problem.ts"
import type { Scope } from "./scope.ts"

/**
 * Finds sources that lost what was copied from them: what has taken the sequences since was stored
 * and acknowledged, and is in no stream that the audit reads. Compares each copy with its original,
 * those of the range and all changes of endpoints.
 *
 * @param compared by stream, the next sequence to compare. Moves on where nothing is wrong.
 */
export const divergedSources = Effect.fnUntraced(function* (
  compared: Map<string, number>,
  { firstEvent, lastEvent, tenant }: Scope
) {
  const { names } = yield* Broker
  const problems: Array<AuditProblem> = []
  for (const stream of yield* copyingStreams) {
    const isEvents = stream === names.events
    const found = yield* compareSources(stream, {
      from: compared.get(stream) ?? (isEvents ? firstEvent : 1),
      ...(isEvents ? { to: lastEvent } : {}),
      isWanted: (source) => (names.tenantOf(source) ?? tenant) === tenant || tenant === undefined
    })
    for (const error of found.unread.values()) return yield* error
    if (found.divergences.length === 0) compared.set(stream, found.next)
    for (const divergence of found.divergences) {
      const { from, source, start } = divergence
      const owner = names.tenantOf(source)
      problems.push({
        kind: "source-diverged",
        ...(owner === undefined ? {} : { tenant: owner }),
        ...{ stream: source, streamSeq: from },
        says: `${divergenceText(divergence)}: run \`petrel init\`, which starts the source again at ${start}`
      })
    }
  }
  return problems
})
