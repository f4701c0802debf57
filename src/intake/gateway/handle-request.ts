import type { IncomingMessage, ServerResponse } from "node:http"
import type { Effect } from "effect"
import type { Broker } from "../../broker/broker.ts"
import type { Connections } from "../../connections/connections.ts"
import { sourceLabel } from "../../domain/source.ts"
import type { ReceivedRequest } from "../../providers/provider.ts"
import { timers } from "../../time/timers.ts"
import type { Admission, AdmissionBounds, NotNow } from "./admission.ts"
import type { Answer } from "./answer.ts"
import { noStore, notNow, notReadable, send, tooLarge, unknownSource } from "./answer.ts"
import { BodyCapacity } from "./body-capacity.ts"
import type { GatewayCounts, Outcome } from "./counts.ts"
import type { LiveSource, SourceTable } from "./live-sources.ts"
import { declaredLength, readBody } from "./read-body.ts"
import type { Refusals } from "./refusals.ts"
import type { StoreWatch } from "./store-watch.ts"
import { makeTakeRequest, tellRefusing } from "./take-request.ts"
import { WaitingRequests } from "./waiting.ts"

interface HandlerOptions {
  readonly admission: Admission
  readonly bounds: AdmissionBounds
  readonly connections: Connections
  readonly counts: GatewayCounts
  /** The largest event, bytes. */
  readonly maxBytes: number
  readonly refusals: Refusals
  readonly store: StoreWatch
  /** Once it does, each answer is the last one of its connection. */
  readonly isStopping: () => boolean
  readonly scheme: "http" | "https"
  readonly sources: () => SourceTable
  readonly run: <A>(effect: Effect.Effect<A, never, Broker>) => Promise<A>
}

/** There is a place, and others of the source have waited for it. */
const queuedBehindOthers: NotNow = { outcome: "overloaded", retryAfterS: 1 }

const sourceForm = /^\/in\/([A-Za-z0-9_-]{1,64})\/([A-Za-z0-9_-]{1,64})\/?$/

/** Returns the key of the source that a URL names, if it has that form. */
const keyIn = (url: string): string | undefined => {
  const [, tenant, id] = sourceForm.exec(url.split("?", 1)[0] ?? "") ?? []
  return tenant === undefined ? undefined : `${tenant}.${id}`
}

/** Headers as providers read them: one text for each name. */
const headersOf = ({ headers }: IncomingMessage): ReceivedRequest["headers"] => {
  const texts: Record<string, string | undefined> = {}
  for (const [name, value] of Object.entries(headers))
    texts[name] = Array.isArray(value) ? value.join(", ") : value
  return texts
}

/** Outcomes of requests that were verified: their connection is the tenant's. */
const verified: ReadonlySet<Outcome> = new Set(["taken", "repeated", "quarantined", "rate-limited"])

/**
 * Returns what handles one request: it is refused before its body is read where it can be, read, taken
 * and answered. It has a place among those under way only once its body is there: whoever sends slowly,
 * or says that much will come, holds none.
 */
export const makeHandler = (options: HandlerOptions) => {
  const {
    admission,
    bounds,
    connections,
    counts,
    maxBytes,
    isStopping,
    refusals,
    run,
    scheme,
    sources,
    store
  } = options
  const capacity = new BodyCapacity(bounds.bytes)
  const take = makeTakeRequest({ admission, refusals, maxBytes, store })

  const waiting = new WaitingRequests()
  const wake = () => waiting.wake((live) => admission.refuses(live) === undefined)

  const refuseLarge = async (live: LiveSource): Promise<Answer> => {
    const told = refusals.tooLarge(live.source, maxBytes, false)
    if (told !== undefined) await run(tellRefusing(live, told))
    return tooLarge(maxBytes)
  }

  const takeBody = async (
    live: LiveSource,
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer
  ): Promise<Answer> => {
    const refused = admission.begin(live)
    if (refused !== undefined) return notNow(live, refused)
    counts.underWay = admission.underWay
    connections.begin(request.socket, response)
    try {
      const answer = await run(
        take(live, {
          method: request.method ?? "",
          url: `${scheme}://${request.headers.host ?? "localhost"}${request.url ?? ""}`,
          headers: headersOf(request),
          body
        })
      )
      if (verified.has(answer.outcome)) connections.recognize(request.socket, live.source.tenant)
      return answer
    } finally {
      admission.end(live)
      counts.underWay = admission.underWay
    }
  }

  const readAndTake = async (
    live: LiveSource,
    request: IncomingMessage,
    response: ServerResponse
  ): Promise<Answer | undefined> => {
    const place = capacity.open(live, () => {
      reading.cancel()
      place.give()
    })
    const reading = readBody(request, maxBytes, place.take)
    try {
      const read = await reading.read
      place.finish()
      switch (read.as) {
        case "body":
          return await takeBody(live, request, response, read.body)
        case "too-large":
          return await refuseLarge(live)
        case "no-capacity":
          return notNow(live, { outcome: "overloaded", retryAfterS: 1 })
        case "broken-off":
          return undefined
      }
    } finally {
      place.give()
      waiting.look()
      wake()
    }
  }

  /** @param wantsBody is called before a body is read that the client has not begun to send. */
  return (
    request: IncomingMessage,
    response: ServerResponse,
    wantsBody: () => void = () => undefined
  ): void => {
    waiting.look()
    const startedAt = timers.monotonicMs()
    const key = keyIn(request.url ?? "")
    const live = key === undefined ? undefined : sources().get(key, timers.wallMs())
    const label = live === undefined ? "_unknown" : sourceLabel(live.source)
    const end = (answer: Answer) => {
      counts.note(label, answer.outcome, answer.status, timers.monotonicMs() - startedAt)
      send(request, response, answer, isStopping())
    }
    if (live === undefined) {
      const isUnreadable = key !== undefined && sources().isUnreadable(key)
      end(isUnreadable ? notReadable : unknownSource)
      return
    }
    const breakOff = () => {
      counts.note(label, "broken-off", 400, timers.monotonicMs() - startedAt)
      response.destroy()
    }
    const go = () => {
      wantsBody()
      void readAndTake(live, request, response)
        .catch(() => noStore)
        .then((answer) => {
          if (answer === undefined) breakOff()
          else end(answer)
        })
    }
    const resume = () => {
      const refused = admission.refuses(live)
      if (response.destroyed) {
        breakOff()
        wake()
      } else if (refused !== undefined) end(notNow(live, refused))
      else go()
    }
    if ((declaredLength(request) ?? 0) > maxBytes) {
      void refuseLarge(live).then(end)
      return
    }
    const refused =
      admission.refuses(live) ?? (waiting.has(live.key) ? queuedBehindOthers : undefined)
    if (refused === undefined) go()
    else if (refused.outcome !== "overloaded" || isStopping() || !waiting.add(live, resume))
      end(notNow(live, refused))
    // There may be capacity since nobody was woken.
    else if (refused === queuedBehindOthers) wake()
  }
}
