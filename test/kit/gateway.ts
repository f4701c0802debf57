import { createHmac } from "node:crypto"
import { request as httpRequest } from "node:http"
import { Deferred, Effect } from "effect"
import Stripe from "stripe"
import { defaultBounds } from "../../src/intake/gateway/admission.ts"
import { GatewayCounts } from "../../src/intake/gateway/counts.ts"
import type { GatewayOptions } from "../../src/intake/gateway/listen.ts"
import { serveGateway } from "../../src/intake/gateway/listen.ts"
import { addSource, type NewSource } from "../../src/operations/sources/manage-sources.ts"
import { alteredBroker } from "./altered-broker.ts"

export const stripeSecret = "whsec_of_the_gateway"

/**
 * A webhook as Stripe sends it, signed by Stripe's own library.
 *
 * @param at when it is signed, s since the epoch.
 */
export const stripeWebhook = (
  event: object,
  secret = stripeSecret,
  at: number = Date.now() / 1_000
) => {
  const payload = JSON.stringify(event)
  const timestamp = Math.floor(at)
  const signature = Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
  return {
    body: payload,
    headers: { "content-type": "application/json", "stripe-signature": signature }
  }
}

/** An event of Stripe's. */
export const stripeEvent = (id: string, changes: object = {}) => ({
  id,
  object: "event",
  type: "invoice.paid",
  created: 1_764_000_000,
  data: { object: { id: "in_1", customer: "cus_1" } },
  ...changes
})

/** A webhook of GitHub's. */
export const githubWebhook = (id: string, body: string, secret: string) => ({
  body,
  headers: {
    "content-type": "application/json",
    "x-github-event": "push",
    "x-github-delivery": id,
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`
  }
})

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: string
}

interface Posted {
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
}

/** Sends a request to a port of this machine. Fails where the connection ends without an answer. */
export const postTo = (
  port: number,
  path: string,
  { body = "", headers = {}, method = "POST" }: Posted
) =>
  Effect.callback<Answered, Error>((resume) => {
    const request = httpRequest(
      { host: "127.0.0.1", port, path, method, headers, agent: false },
      (response) => {
        const chunks: Array<Buffer> = []
        response.on("data", (chunk: Buffer) => chunks.push(chunk))
        response.on("end", () =>
          resume(
            Effect.succeed({
              status: response.statusCode ?? 0,
              headers: response.headers,
              body: Buffer.concat(chunks).toString()
            })
          )
        )
      }
    )
    request.on("error", (error) => resume(Effect.fail(error)))
    request.end(body)
  })

/** A gateway in this process, on a free port. */
export const startGateway = Effect.fnUntraced(function* (options: Partial<GatewayOptions> = {}) {
  const counts = new GatewayCounts()
  const { port, problems } = yield* serveGateway({
    host: "127.0.0.1",
    port: 0,
    counts,
    bounds: defaultBounds,
    ...options
  })
  const post = (path: string, posted: Posted) => postTo(port, path, posted)
  /** How often a source's requests came to an outcome. */
  const counted = (source: string, outcome: string): number => {
    const requests = counts.families().find(({ name }) => name === "petrel.intake.requests")
    return (
      (
        requests?.samples.find(
          ({ labels }) => labels.source === source && labels.outcome === outcome
        ) as { readonly value: number } | undefined
      )?.value ?? 0
    )
  }
  return { port, post, problems, counted }
})

/** Adds a source of acme. */
export const source = (id: string, settings: NewSource, tenant = "acme") =>
  addSource({ tenant, id }, settings, "test")

export const stripeSource = (id = "stripe") =>
  source(id, { provider: "stripe", secrets: [stripeSecret] })

/** The broker at hand, which holds back what is published to some subjects until it is released. */
export const heldBroker = Effect.fnUntraced(function* (
  isHeld: (of: { readonly subject: string }) => boolean
) {
  const released = yield* Deferred.make<void>()
  let count = 0
  const broker = yield* alteredBroker(({ publish }) => ({
    publish: (subject, ...rest) => {
      const store = publish(subject, ...rest)
      if (!isHeld({ subject })) return store
      count++
      return Effect.andThen(Deferred.await(released), store)
    }
  }))
  return {
    broker,
    /** How often something was held back. */
    count: Effect.sync(() => count),
    release: Deferred.succeed(released, undefined)
  }
})
