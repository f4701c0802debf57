import { Effect } from "effect"
import type { Broker, BrokerError } from "../broker/connection.ts"
import type { CircuitSettings } from "../domain/circuit.ts"
import type { Endpoint } from "../domain/endpoint.ts"
import { circuitOf, endpointKey } from "../domain/endpoint.ts"
import type { Health } from "../domain/health.ts"
import { healthy } from "../domain/health.ts"
import { listHealth } from "../endpoints/health-record.ts"
import { readHealth } from "../endpoints/health-store.ts"
import { momentText, plainText } from "../history/line.ts"
import { spanText } from "../history/span.ts"
import { isRamping } from "../policy/circuit.ts"
import { withWords } from "./duration.ts"

/**
 * Reads an endpoint's health from the leader. The health of an earlier endpoint of the same name is
 * ignored. An unreadable value is ignored with a warning.
 */
export const healthOf = ({
  generation,
  id,
  tenant
}: Endpoint): Effect.Effect<Health, BrokerError, Broker> =>
  readHealth(tenant, id).pipe(
    Effect.map(({ health }) => (health?.generation === generation ? health : healthy(generation))),
    Effect.catchTag("HealthUnreadable", ({ message }) =>
      Effect.as(Effect.logWarning(message), healthy(generation))
    )
  )

/**
 * Reads the health of all endpoints in one scan. The health of an earlier endpoint of the same name
 * is ignored.
 */
export const healthOfAll = Effect.map(listHealth, (stored) => {
  const known = new Map(stored.map(({ health, key }) => [key, health]))
  return ({ generation, id, tenant }: Endpoint): Health => {
    const health = known.get(endpointKey(tenant, id))
    return health?.generation === generation ? health : healthy(generation)
  }
})

/** Returns when the next probe may be sent, ms since the epoch; undefined for a closed circuit. */
const nextProbe = ({ circuit, notBefore = 0 }: Health): number | undefined =>
  circuit.state === "closed" ? undefined : Math.max(circuit.until ?? 0, notBefore)

const stateJson = (health: Health): object => {
  const { lastProbe, since, state, successes, why } = health.circuit
  const nextProbeAt = nextProbe(health)
  return {
    state,
    ...(since === 0 ? {} : { since }),
    ...(nextProbeAt === undefined ? {} : { nextProbeAt }),
    ...(successes === undefined ? {} : { probesSucceeded: successes }),
    ...(lastProbe === undefined ? {} : { lastProbe }),
    ...(why === undefined ? {} : { why })
  }
}

/**
 * Returns all settings of an endpoint's circuit as `--circuit` accepts them, and its state if
 * known. Times in ms since the epoch.
 */
export const circuitJson = (endpoint: Endpoint, health: Health | undefined): unknown => {
  const { coolDown, giveUpAfter, maxCoolDown, rate, ...rest } = circuitOf(endpoint)
  return withWords({
    ...(health === undefined ? {} : stateJson(health)),
    ...rest,
    rate: rate === undefined ? "none" : { ...rate, over: `${rate.over} millis` },
    coolDown: `${coolDown} millis`,
    maxCoolDown: `${maxCoolDown} millis`,
    giveUpAfter: `${giveUpAfter} millis`
  })
}

/** Returns the rest of an endpoint's health. Times in ms since the epoch. */
export const healthJson = ({ circuit: _, generation: __, v: ___, ...rest }: Health): object => rest

/** Formats a time to the second, the precision of health. */
export const moment = (at: number, now: number): string => momentText(at, now).replace(/\.\d+$/, "")

const circuitText = (health: Health, { successes }: CircuitSettings, now: number): string => {
  const { since, state, successes: done = 0, why = "" } = health.circuit
  if (isRamping(health)) return `closed since ${moment(since, now)}, and traffic comes back`
  if (state === "closed") return state
  const probeAt = nextProbe(health) ?? now
  const probe =
    probeAt > now ? `probed at ${moment(probeAt, now)}` : "probed with the next delivery"
  const progress = state === "half-open" ? `${done} of ${successes} probes succeeded` : probe
  return `${state} since ${moment(since, now)} (${plainText(why)}), ${progress}`
}

const opensText = ({
  coolDown,
  failures,
  maxCoolDown,
  onOpen,
  rate,
  successes
}: CircuitSettings) => {
  const share =
    rate === undefined
      ? ""
      : ` or ${rate.percent}% of at least ${rate.of} in ${spanText(rate.over)}`
  const meanwhile = onOpen === "backlog" ? "events wait" : "events are dead-lettered"
  return `at ${failures} failures in a row${share}; ${meanwhile}; probed after ${spanText(coolDown)}, up to ${spanText(maxCoolDown)}, until ${successes} succeed`
}

const failingText = (health: Health, now: number): string | undefined => {
  const { failingSince, failuresInRow, giveUpAt, lastError, lastStatus, permanentInRow } = health
  const answer = [lastStatus, lastError].filter((part) => part !== undefined).join(" ")
  const last = answer === "" ? "" : `, the last: ${plainText(answer)}`
  if (failingSince !== undefined && giveUpAt !== undefined)
    return `since ${moment(failingSince, now)}, ${failuresInRow} in a row${last}; disabled if it goes on until ${moment(giveUpAt, now)}`
  return permanentInRow === 0 ? undefined : `${permanentInRow} permanent failures in a row${last}`
}

/** Returns an endpoint's health for people, one row per property. */
export const healthRows = (
  endpoint: Endpoint,
  health: Health,
  now: number
): ReadonlyArray<readonly [string, string]> => {
  const settings = circuitOf(endpoint)
  const failing = failingText(health, now)
  const { notBefore = 0 } = health
  return [
    ["circuit", circuitText(health, settings, now)],
    ["opens", opensText(settings)],
    [
      "gives up",
      `after ${spanText(settings.giveUpAfter)} of failures, or ${settings.permanentFailures} permanent ones in a row`
    ],
    ...(failing === undefined ? [] : [["failing", failing] as const]),
    ...(notBefore > now
      ? [["left alone", `until ${moment(notBefore, now)}, as the receiver asked`] as const]
      : [])
  ]
}
