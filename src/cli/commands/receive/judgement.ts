import {
  type Verification,
  type VerificationOptions,
  verify
} from "../../../endpoints/verification.ts"
import type { HandshakeAnswer, Provider } from "../../../providers/provider.ts"

/** A request as it came. */
export interface Judged {
  readonly method: string
  /** With the query. */
  readonly path: string
  /** By name in lower case; values of one name are joined. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** What a receiver makes of a request before it answers. */
export interface Judgement {
  readonly signature: Verification
  /** The id of the event, of a batch that of the first; undefined where there is none. */
  readonly event: string | undefined
  readonly type: string | undefined
  /** Events of a batch. Absent for a request that is one event. */
  readonly events?: number
  /** Why the events of a verified request cannot be read. */
  readonly unreadable?: string
  /** What is answered to a request that only asks who is here. */
  readonly handshake?: HandshakeAnswer
}

/** Judges a request that comes at a time, ms since the epoch. */
export type Judge = (request: Judged, at: number) => Judgement | Promise<Judgement>

const firstOf = (headers: Judged["headers"], ...names: ReadonlyArray<string>) => {
  const name = names.find((one) => headers[one] !== undefined)
  return name === undefined ? undefined : headers[name]
}

/** Judges by whichever of Petrel's own schemes the headers are of. */
export const judgeByScheme =
  (keys: VerificationOptions): Judge =>
  ({ body, headers }, at) => ({
    signature: verify({ headers, body }, keys, at),
    event: firstOf(headers, "webhook-id", "x-github-delivery"),
    type: firstOf(headers, "webhook-event-type", "x-github-event")
  })

const signatureOf = async (
  provider: Provider,
  request: Parameters<Provider["verify"]>[0],
  at: number
): Promise<Verification> => {
  const scheme = provider.name
  try {
    const found = await provider.verify(request, at)
    if (found.ok) return { result: "good", scheme }
    return found.problem === "signature-missing"
      ? { result: "unsigned" }
      : { result: "bad", scheme, why: found.text }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return { result: "bad", scheme, why: `the certificate could not be fetched: ${why}` }
  }
}

/** Judges as a provider's receivers do, answers its handshakes, and finds the ids of its events. */
export const judgeByProvider =
  (provider: Provider): Judge =>
  async ({ body, headers, method, path }, at) => {
    const request = { method, url: path, headers, body }
    const handshake = provider.handshake?.(request, at)
    if (handshake !== undefined)
      return {
        signature: { result: "good", scheme: provider.name },
        event: undefined,
        type: "handshake",
        handshake
      }
    const signature = await signatureOf(provider, request, at)
    const reading = provider.read(request)
    if (!reading.ok)
      return { signature, event: undefined, type: undefined, unreadable: reading.text }
    const [first] = reading.events
    return {
      signature,
      event: first?.id,
      type: first?.type,
      ...(reading.events.length !== 1 && { events: reading.events.length })
    }
  }
