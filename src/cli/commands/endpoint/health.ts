import { plainText } from "../../../history/line.ts"
import type {
  CircuitView,
  EndpointHealthView,
  HealthView
} from "../../../operations/endpoints/endpoint-view.ts"
import { durationText, moment } from "../../../operations/text/time.ts"

const circuitText = (circuit: CircuitView, now: number): string => {
  const { probesSucceeded: done = 0, ramping, since = 0, state, successes, why = "" } = circuit
  if (ramping === true) return `closed since ${moment(since, now)}, and traffic comes back`
  if (state === undefined || state === "closed") return "closed"
  const probeAt = circuit.nextProbeAt ?? now
  const probe =
    probeAt > now ? `probed at ${moment(probeAt, now)}` : "probed with the next delivery"
  const progress = state === "half-open" ? `${done} of ${successes} probes succeeded` : probe
  return `${state} since ${moment(since, now)} (${plainText(why)}), ${progress}`
}

const opensText = ({ coolDown, failures, maxCoolDown, onOpen, rate, successes }: CircuitView) => {
  const share =
    rate === "none"
      ? ""
      : ` or ${rate.percent}% of at least ${rate.of} in ${durationText(rate.over)}`
  const meanwhile = onOpen === "backlog" ? "events wait" : "events are dead-lettered"
  return `at ${failures} failures in a row${share}; ${meanwhile}; probed after ${durationText(coolDown)}, up to ${durationText(maxCoolDown)}, until ${successes} succeed`
}

const givenUp = { disable: "disabled", suspend: "suspended" } as const

const givesUpText = ({ giveUpAfter, onGiveUp, onGone, permanentFailures }: CircuitView): string => {
  const after = `after ${durationText(giveUpAfter)} of failures, or ${permanentFailures} permanent ones in a row: ${givenUp[onGiveUp]} then`
  return onGone === onGiveUp ? after : `${after}; ${givenUp[onGone]} at a 410`
}

const failingText = (
  health: HealthView,
  { onGiveUp }: CircuitView,
  now: number
): string | undefined => {
  const { failingSince, failuresInRow, giveUpAt, lastError, lastStatus, permanentInRow } = health
  const answer = [lastStatus, lastError].filter((part) => part !== undefined).join(" ")
  const last = answer === "" ? "" : `, the last: ${plainText(answer)}`
  if (failingSince !== undefined && giveUpAt !== undefined)
    return `since ${moment(failingSince, now)}, ${failuresInRow} in a row${last}; ${givenUp[onGiveUp]} if it goes on until ${moment(giveUpAt, now)}`
  return permanentInRow === 0 ? undefined : `${permanentInRow} permanent failures in a row${last}`
}

/** Returns an endpoint's health for people, one row per property. */
export const healthRows = (
  { circuit, health }: EndpointHealthView,
  now: number
): ReadonlyArray<readonly [string, string]> => {
  const failing = failingText(health, circuit, now)
  const { notBefore = 0 } = health
  return [
    ["circuit", circuitText(circuit, now)],
    ["opens", opensText(circuit)],
    ["gives up", givesUpText(circuit)],
    ...(failing === undefined ? [] : [["failing", failing] as const]),
    ...(notBefore > now
      ? [["left alone", `until ${moment(notBefore, now)}, as the receiver asked`] as const]
      : [])
  ]
}
