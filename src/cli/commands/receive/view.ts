import { styleText } from "node:util"
import type { Verification } from "../../../endpoints/verification.ts"
import { plainText } from "../../../history/line.ts"
import { spanText } from "../../../history/span.ts"
import { bytesText } from "../../../operations/text/bytes.ts"
import { countText, plural } from "../../../operations/text/number-format.ts"
import { moment } from "../../../operations/text/time.ts"

/** A request, and what it was answered. */
export interface HandledRequest {
  /** ms since the epoch. */
  readonly at: number
  readonly method: string
  readonly path: string
  /** The event's id; undefined where no header says it. */
  readonly event: string | undefined
  readonly type: string | undefined
  /** The number of the attempt, as Petrel says it. */
  readonly attempt: number | undefined
  readonly bytes: number
  readonly signature: Verification
  /** Requests of the same event before this one. */
  readonly seen: number
  /** Absent where the connection was closed without an answer. */
  readonly status?: number
  /** How long the answer was held back, ms. */
  readonly delayMs: number
}

const signatureText = (signature: Verification): string => {
  switch (signature.result) {
    case "good":
      return `signature good (${signature.scheme})`
    case "bad":
      return `SIGNATURE BAD (${signature.scheme}): ${signature.why}`
    case "unchecked":
      return `${signature.scheme} signature, not checked`
    case "unsigned":
      return "not signed"
  }
}

const isGood = (status: number | undefined): boolean =>
  status !== undefined && status >= 200 && status < 300

/** Returns a request as one line. */
export const requestLine = (request: HandledRequest, colour: boolean): string => {
  const { at, attempt, bytes, delayMs, event, method, path, seen, signature, status, type } =
    request
  const answer = status === undefined ? "no answer" : String(status)
  const hue = isGood(status) ? "green" : "red"
  const painted = colour ? styleText(hue, answer, { validateStream: false }) : answer
  return [
    moment(at, at),
    painted,
    `${method} ${plainText(path)}`,
    plainText(type ?? "(no type)"),
    plainText(event ?? "(no id)"),
    ...(attempt === undefined ? [] : [`attempt ${attempt}`]),
    ...(seen === 0 ? [] : [`seen ${plural(seen, "time")} before`]),
    bytesText(bytes),
    signatureText(signature),
    ...(delayMs === 0 ? [] : [`after ${spanText(delayMs)}`])
  ].join("  ")
}

/** Counts of all requests so far. */
export interface ReceivedCounts {
  readonly requests: number
  readonly events: number
  readonly repeats: number
  readonly badSignatures: number
  /** By status, or `no answer`. */
  readonly answers: Readonly<Record<string, number>>
}

/** Returns what was received in all, as one line. */
export const countsLine = ({
  answers,
  badSignatures,
  events,
  repeats,
  requests
}: ReceivedCounts): string => {
  const each = Object.entries(answers).map(([answer, count]) => `${countText(count)} × ${answer}`)
  return [
    plural(requests, "request"),
    plural(events, "event"),
    plural(repeats, "repeat"),
    `${countText(badSignatures)} bad ${badSignatures === 1 ? "signature" : "signatures"}`,
    ...(each.length === 0 ? [] : [`answered ${each.join(", ")}`])
  ].join(", ")
}
