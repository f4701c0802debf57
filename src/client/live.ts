import { type Calling, isPassing, pauseMs, type Request } from "./calling.ts"
import { pause, watch } from "./machine.ts"
import type { CallOptions } from "./operation.ts"
import { NoAnswer, PetrelProblem, problemIn } from "./problem.ts"

/** A failure as the history has it; further fields as docs/reference/facts.md says. */
export interface Failure {
  /** Such as `attempt-failed` or `dead-lettered`. */
  readonly kind: string
  readonly tenant?: string
  readonly endpoint?: string
  readonly [field: string]: unknown
}

/** What happens, as it is told. */
export type LiveMessage =
  | {
      readonly tells: "failure"
      /** Its sequence in the history. */
      readonly seq: number
      readonly failure: Failure
    }
  | {
      readonly tells: "dropped"
      /** How many failures are left out; null where nobody knows. */
      readonly dropped: number | null
      readonly why: string
      /** They lie between these sequences of the history, if they are of the time before. */
      readonly after?: number
      readonly until?: number
    }

export interface LiveOptions extends CallOptions {
  /** Goes on after this one: `lastEventId` of an earlier stream. (Default: what happens from now on) */
  readonly lastEventId?: string | undefined
  /** Called with true each time that failures are followed, and with false when a connection ends. */
  readonly onConnected?: ((isConnected: boolean) => void) | undefined
}

/** Failures as they happen. It is read once. */
export interface Live extends AsyncIterable<LiveMessage> {
  /** Where it is: what another one may go on after. Undefined before it has begun. */
  readonly lastEventId: string | undefined
}

/** An event of a stream (WHATWG, server-sent events). */
interface ServerEvent {
  readonly name: string
  readonly data: string
  readonly id: string | undefined
  readonly retryMs: number | undefined
}

/** Shortest pause that a server may ask for, ms: with 0 a client would do nothing but connect. */
const leastRetryMs = 100

/** Returns the events in the text of a stream. The last one may be cut off: it is none. */
export async function* serverEvents(
  pieces: AsyncIterable<Uint8Array>
): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  let rest = ""
  for await (const piece of pieces) {
    rest += decoder.decode(piece, { stream: true })
    const blocks = rest.split("\n\n")
    rest = blocks.pop() ?? ""
    for (const block of blocks) yield eventIn(block)
  }
}

const eventIn = (block: string): ServerEvent => {
  const fields = new Map<string, string>()
  for (const line of block.split("\n")) {
    const [, name = "", value = ""] = /^([a-z]+): ?(.*)$/.exec(line) ?? []
    fields.set(name, value)
  }
  const retry = fields.get("retry") ?? ""
  return {
    name: fields.get("event") ?? "message",
    data: fields.get("data") ?? "",
    id: fields.get("id"),
    retryMs: /^\d+$/.test(retry) ? Math.max(leastRetryMs, Number(retry)) : undefined
  }
}

const messageOf = ({ data, name }: ServerEvent): LiveMessage | undefined => {
  if (name === "failure") {
    const { seq, ...failure } = JSON.parse(data)
    return { tells: "failure", seq, failure }
  }
  return name === "dropped" ? { tells: "dropped", ...JSON.parse(data) } : undefined
}

/** Pause before a stream that ended is asked for again, unless the server says, ms. */
const usualRetryMs = 2_000
/** The server lets nothing be quiet for longer than 15 s: beyond, the connection is lost. */
const quietMs = 45_000

/**
 * One connection: the events that come on it until it ends. Throws NoAnswer where it breaks off, and
 * PetrelProblem where it is refused. What the program's own functions throw passes as it is.
 */
async function* connection(
  { transport }: Calling,
  request: Request,
  { onConnected = () => undefined, signal }: LiveOptions
): AsyncGenerator<ServerEvent> {
  const { id } = request
  const { follower } = transport
  if (follower === undefined) throw new TypeError(`${id} is not offered here`)
  const follow = follower(request)
  const watched = watch(quietMs, signal, () => new NoAnswer(id, "the stream has become quiet"))
  try {
    const { answer, pieces } = await follow(watched.signal)
    if (pieces === undefined) throw problemIn(id, answer)
    try {
      let isToBegin = true
      for await (const event of serverEvents(pieces)) {
        watched.touch()
        // A server that has lost its broker answers, and then knows no position.
        if (isToBegin && event.id !== undefined) {
          isToBegin = false
          onConnected(true)
        }
        yield event
      }
    } finally {
      onConnected(false)
    }
  } catch (error) {
    // What was aborted breaks off, and says so in many ways.
    throw error instanceof NoAnswer && watched.signal.aborted ? watched.signal.reason : error
  } finally {
    // Pieces that nobody has begun to read keep their connection open.
    watched.abort()
  }
}

/** Returns the seconds after which a stream may be asked for again; throws what does not pass. */
const comeBackAfter = (error: unknown): number | undefined => {
  if (error instanceof NoAnswer) return undefined
  if (error instanceof PetrelProblem && isPassing(error.status)) return error.retryAfter
  throw error
}

/** Follows failures, and comes back where it was when the connection is lost. */
export const followFailures = (
  calling: Calling,
  requestFrom: (lastEventId: string | undefined) => Request,
  options: LiveOptions
): Live => {
  const { lastEventId, signal } = options
  let last = lastEventId
  let retryMs = usualRetryMs
  async function* messages(): AsyncGenerator<LiveMessage> {
    for (let attempt = 0; ; attempt++) {
      let retryAfter: number | undefined
      try {
        for await (const event of connection(calling, requestFrom(last), options)) {
          attempt = 0
          last = event.id ?? last
          retryMs = event.retryMs ?? retryMs
          const message = messageOf(event)
          if (message !== undefined) yield message
        }
      } catch (error) {
        if (signal?.aborted === true) throw signal.reason
        retryAfter = comeBackAfter(error)
      }
      await pause(Math.max(retryMs, pauseMs(attempt, retryAfter)), signal)
    }
  }
  return {
    get lastEventId() {
      return last
    },
    [Symbol.asyncIterator]: messages
  }
}
