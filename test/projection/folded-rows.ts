import { HashMap } from "effect"
import type { Fact } from "../../src/domain/fact.ts"
import { viewOf } from "../../src/history/fold/delivery.ts"
import { attemptsOf, endOf, isLate } from "../../src/history/fold/round.ts"
import { DeliveryRow } from "../../src/projection/delivery-log.ts"

/** What a row has to say, whatever made it. */
export type Said = Omit<DeliveryRow, "redeliveredAs" | "seq" | "nextAttemptAt" | "delivery">

const nameOf = (row: Pick<DeliveryRow, "endpoint" | "eventAt" | "eventSeq" | "round" | "tenant">) =>
  `${row.eventSeq}@${row.eventAt}.${row.tenant}.${row.endpoint}.${row.round}`

/** What the facts come to, by the fold of history/: one entry for each round. */
export const foldedRows = (facts: ReadonlyArray<Fact>): Record<string, Said> => {
  const said: Record<string, Said> = {}
  for (const life of HashMap.values(viewOf(facts).deliveries))
    for (const { attempts, begun, end, round, state } of life.rounds) {
      const successes = attempts.filter(({ isSuccess }) => isSuccess)
      const last = endOf(state) === "delivered" ? successes.at(-1) : attempts.at(-1)
      const row: Said = {
        round,
        tenant: life.tenant,
        endpoint: life.endpoint,
        event: life.event ?? `evt_${life.eventSeq}`,
        eventSeq: life.eventSeq,
        eventAt: life.eventAt,
        type: life.type ?? null,
        state: endOf(state) === "none" ? "waiting" : (endOf(state) as "delivered"),
        late: isLate(state),
        attempts: attemptsOf(state),
        probes: attempts.filter(({ isProbe }) => isProbe).length,
        status: last?.status ?? null,
        error: last?.error?.class ?? null,
        reason: end?.reason ?? null,
        beganAt: begun?.at ?? null,
        at: end?.at ?? begun?.at ?? attempts[0]?.at ?? 0,
        durationMs: last?.durationMs ?? null,
        dead: end?.dead ?? null
      }
      said[nameOf(row)] = row
    }
  return said
}

const {
  delivery: _,
  nextAttemptAt: __,
  redeliveredAs: ___,
  seq: ____,
  ...compared
} = DeliveryRow.fields
const sayNames = Object.keys(compared) as ReadonlyArray<keyof Said>

/** What rows of the log say, or its rounds, without those of endpoints that a plan left out. */
export const saidBy = (rows: ReadonlyArray<DeliveryRow>): Record<string, Said> =>
  Object.fromEntries(
    rows
      .filter(({ state }) => state !== "skipped")
      .map((row) => [
        nameOf(row),
        Object.fromEntries(sayNames.map((name) => [name, row[name]])) as unknown as Said
      ])
  )
