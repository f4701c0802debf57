import { createHash } from "node:crypto"

/*
 * An entry is one event that an inbox knows, under its source and key. Its states:
 *
 *   received     stored, and to be worked on at its time; a failed attempt leaves it here with a later time
 *   done         its work is committed. The body is dropped, the key stays for as long as the sender may repeat it
 *   stale        skipped: a newer version of its subject was worked on before
 *   dead         its work failed for good, or as often as it may; kept with its body until a person decides
 *   quarantined  verified, but not readable; kept like a dead one
 *   discarded    a person has resolved a dead or quarantined one
 *
 *   received → done | stale | dead;  dead, quarantined → received (retry) | discarded (resolve)
 *
 * What `once` takes begins as done (or stale): it is inserted in the transaction of its work.
 */
export const entryStates = [
  "received",
  "done",
  "stale",
  "dead",
  "quarantined",
  "discarded"
] as const
export type EntryState = (typeof entryStates)[number]

/** What is stored of an event. Times are in ms since 1970, durations in ms. */
export interface NewEntry {
  /** The name of the source in the settings of the receiver. */
  readonly source: string
  /** What makes two receipts the same event, within the source. */
  readonly key: string
  /** Undefined for a request that could not be read. */
  readonly type: string | undefined
  readonly subject: string | undefined
  /** Greater for a later state of the subject. Undefined: versions are not compared. */
  readonly version: number | undefined
  /** When it happened, by the sender's clock. */
  readonly at: number | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly contentType: string
  readonly body: Uint8Array
  /** For how long the key is remembered after its receipt. */
  readonly keepMs: number
}

export interface Entry extends Omit<NewEntry, "body"> {
  /** The store's own id, ascending in the order of receipt. */
  readonly id: string
  readonly state: EntryState
  /** Attempts that have begun since the receipt, or since the last retry by hand. */
  readonly attempts: number
  /** How often it was received. */
  readonly receipts: number
  /** How many of the receipts had another body than the first. */
  readonly conflicts: number
  readonly receivedAt: number
  readonly startedAt: number | undefined
  readonly finishedAt: number | undefined
  readonly nextAt: number
  readonly error: string | undefined
  /** Undefined once nothing needs it any more. */
  readonly body: Uint8Array | undefined
}

/** SHA-256 in hexadecimal digits. */
export const sha256 = (data: Uint8Array | string): string =>
  createHash("sha256").update(data).digest("hex")

/**
 * Whether every store takes a text as it is: it is short, has neither control characters nor halves of surrogates,
 * and no spaces at its ends, which MySQL does not compare.
 */
export const isPlain = (text: string): boolean =>
  text === text.trim() &&
  text.length > 0 &&
  text.length <= 200 &&
  !/[\p{Cc}\p{Surrogate}]/u.test(text)

/** Returns a text that every store takes as a key: itself, or its hash if it is long or odd. */
export const storable = (text: string): string => (isPlain(text) ? text : `sha256:${sha256(text)}`)

/** Longest text of an error that is stored, in characters. */
const maxErrorLength = 2_000

/** Returns what is stored of an error: no stack, nothing that a database refuses. */
export const errorText = (error: unknown): string => {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text
    .slice(0, maxErrorLength)
    .replaceAll(/(?![\n\t])\p{Cc}/gu, " ")
    .replaceAll(/\p{Surrogate}/gu, "\uFFFD")
}

/**
 * Thrown by work that will never succeed with this event, such as one for an account that there is not. The event
 * is kept as a dead one, and the sender is answered 200, since a repeat changes nothing.
 */
export class PermanentError extends Error {
  override readonly name = "PermanentError"
}

/** An error of another copy of this module counts, too. */
export const isPermanent = (error: unknown): boolean =>
  error instanceof Error && error.name === "PermanentError"
