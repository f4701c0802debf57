import createClient from "openapi-fetch"
import type { components, paths } from "./petrel.d.ts"

type Job = components["schemas"]["Job"]

/** Fails with the problem document of an answer. */
const must = <A>({ data, error }: { readonly data?: A; readonly error?: unknown }): A => {
  if (data === undefined) throw new Error(`refused: ${JSON.stringify(error)}`)
  return data
}

/** What the client found out. */
export interface Found {
  readonly endpoint: components["schemas"]["ChangedEndpoint"]
  readonly changed: ReadonlyArray<string>
  readonly staleStatus: number
  readonly published: string
  readonly batch: components["schemas"]["BatchResult"]
  readonly delivery: components["schemas"]["Delivery"]
  readonly event: components["schemas"]["Event"]
  readonly dead: ReadonlyArray<components["schemas"]["DeadLetter"]>
  readonly job: Job
}

/**
 * Does with a client made from the OpenAPI document what a platform does: adds an endpoint, publishes
 * to it, looks what became of it, and sends again what failed.
 *
 * @param mend makes the receiver take what it refused.
 */
export const useClient = async (
  baseUrl: string,
  token: string,
  receiver: string,
  mend: () => void
): Promise<Found> => {
  const { DELETE, GET, PATCH, POST, PUT } = createClient<paths>({
    baseUrl,
    headers: { authorization: `Bearer ${token}` }
  })
  const path = { tenant: "acme", id: "billing" }

  const endpoint = must(
    await PUT("/v1/tenants/{tenant}/endpoints/{id}", {
      params: { path },
      body: {
        url: receiver,
        types: ["invoice.*"],
        retry: {
          backoff: { kind: "fixed", delay: "50 millis" },
          jitter: "none",
          maxAttempts: 2,
          window: "1 minute"
        }
      }
    })
  )
  const shown = await GET("/v1/tenants/{tenant}/endpoints/{id}", { params: { path } })
  const etag = shown.response.headers.get("etag") ?? ""
  const { changed } = must(
    await PATCH("/v1/tenants/{tenant}/endpoints/{id}", {
      params: { path, header: { "if-match": etag } },
      body: { maxInFlight: 3, contact: "ops" }
    })
  )
  const stale = await PATCH("/v1/tenants/{tenant}/endpoints/{id}", {
    params: { path, header: { "if-match": etag } },
    body: { contact: null }
  })

  const published = must(
    await POST("/v1/tenants/{tenant}/events", {
      params: { path: { tenant: "acme" } },
      body: { type: "invoice.paid", id: "i1", data: { invoice: 42 } }
    })
  )
  const batch = must(
    await POST("/v1/tenants/{tenant}/events", {
      params: { path: { tenant: "acme" } },
      body: [
        { type: "invoice.sent", text: "a" },
        { type: "no type", text: "b" }
      ]
    })
  )
  if (!("id" in published) || !("events" in batch)) throw new Error("not as the document says")

  const until = async <A>(look: () => Promise<A>, holds: (found: A) => boolean): Promise<A> => {
    const found = await look()
    if (holds(found)) return found
    await new Promise((again) => setTimeout(again, 50))
    return until(look, holds)
  }
  const list = async () =>
    must(
      await GET("/v1/tenants/{tenant}/dead-letters", {
        params: { path: { tenant: "acme" }, query: { endpoint: ["billing"], limit: 10 } }
      })
    ).deadLetters
  const dead = await until(list, ({ length }) => length === 2)
  mend()

  const started = must(
    await POST("/v1/tenants/{tenant}/redeliveries", {
      params: { path: { tenant: "acme" } },
      body: { endpoint: "billing" }
    })
  )
  if (!("state" in started)) throw new Error("not as the document says")
  const look = async () =>
    must(
      await GET("/v1/tenants/{tenant}/redeliveries/{job}", {
        params: { path: { tenant: "acme", job: started.id } }
      })
    )
  const job = await until(look, ({ state }) => state !== "waiting" && state !== "running")
  const delivery = await until(
    async () =>
      must(
        await GET("/v1/tenants/{tenant}/deliveries/{delivery}", {
          params: { path: { tenant: "acme", delivery: `${published.id}.billing` } }
        })
      ),
    ({ rounds }) => rounds.at(-1)?.state === "delivered"
  )
  const event = must(
    await GET("/v1/tenants/{tenant}/events/{event}", {
      params: { path: { tenant: "acme", event: published.id } }
    })
  )
  must(await DELETE("/v1/tenants/{tenant}/endpoints/{id}", { params: { path } }))
  return {
    endpoint,
    changed,
    staleStatus: stale.response.status,
    published: published.id,
    batch,
    delivery,
    event,
    dead,
    job
  }
}
