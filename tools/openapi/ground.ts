/*
 * What has to be there for operations to find something: endpoints, sources, events, deliveries, dead
 * letters, jobs and tokens of one tenant. What is in quarantine has no way in over the API, and is put
 * there by who starts the console.
 */
import type { Operation } from "./document.ts"
import type { Hints } from "./inputs.ts"

const tenant = "acme"
const root = `/v1/tenants/${tenant}`

/**
 * Endpoints that are driven. The first takes what it gets; the second refuses it and is left, the
 * third refuses it and is tried again later.
 */
const endpoints = ["good", "bad", "later"]

/** Sources that are driven. */
const sources = ["stripe", "github"]

/** How long deliveries may take to end, ms. */
const withinMs = 30_000

/** What fields usually are. No address leads out of this machine. */
export const hintsFor = (receiver: string): Hints => ({
  tenant: [tenant],
  url: [receiver],
  redirectsTo: [new URL(receiver).origin],
  types: ["invoice.paid", "invoice.*", ">", "other"],
  type: ["invoice.paid", "other"],
  "retryFor{}": ["invoice.*", "other"],
  retry: ["default", "patient"],
  retryFor: ["default"],
  "statuses{}": ["404", "5xx"],
  "errors{}": ["timeout", "connection"],
  signatureHeader: ["x-signature"],
  base64: ["aGVsbG8="],
  traceparent: [`00-${"a".repeat(32)}-${"b".repeat(16)}-01`],
  contentType: ["application/json", "text/plain"],
  status: ["503", "5xx"],
  endpoint: endpoints,
  // Given wherever they may be: few providers do without.
  "!": ["secrets"],
  provider: ["stripe", "github"],
  secrets: ["whsec_of_a_source"],
  reason: ["unreadable", "id-collision"],
  source: ["stripe"],
  expiresAt: ["2099-01-01T00:00:00.000Z"],
  // Of GitHub's API, and of Stripe's.
  webhookId: ["repos/acme/shop/hooks/42", "we_1NqyZP2eZvKYlo2C"],
  apiKey: ["a-key"],
  publicUrl: [`${receiver}/in`],
  apiUrl: [`${receiver}/api`],
  reconcile: ["1 hour", "15m"],
  ...Object.fromEntries(
    [
      ...["base", "cap", "step", "delay", "delays", "window", "over", "coolDown", "maxCoolDown"],
      ...["giveUpAfter", "timeout", "connectTimeout", "retryAfterCap", "keepOld", "medianTime"],
      ...["p99Time", "unroutedTime", "maxTimeout", "tolerance"]
    ].map((name) => [name, ["5 seconds", "1m", "PT30S"]])
  )
})

/** Waits until something holds. */
const until = async (holds: () => Promise<boolean>, otherwise: string): Promise<void> => {
  const end = performance.now() + withinMs
  while (performance.now() < end) {
    if (await holds()) return
    await new Promise((again) => setTimeout(again, 50))
  }
  throw new Error(`${otherwise} within ${withinMs / 1_000} s: is there a worker?`)
}

/** Endpoints and sources that are there to be removed. */
const removed = Array.from({ length: 40 }, (_, n) => `removed-${n}`)

/** Sources that are not there before one is added. */
const added = Array.from({ length: 40 }, (_, n) => `added-${n}`)

/** Makes what has to be there, and finds what operations can be asked about. */
export const groundAt = (url: string, token: string, receiver: string) => {
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const text = await response.text()
    return response.ok && text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {}
  }
  const listed = async (
    path: string,
    name: string,
    key: string
  ): Promise<ReadonlyArray<string>> => {
    const { [name]: found } = await ask("GET", path)
    return Array.isArray(found) ? found.map((one: Record<string, unknown>) => String(one[key])) : []
  }
  const retryOf = (id: string) => ({
    backoff: { kind: "fixed", delay: "10 minutes" },
    jitter: "none",
    maxAttempts: id === "later" ? 6 : 1,
    window: "2 hours"
  })
  const own = token.split("_")[1] ?? ""
  let round = 0

  /** Puts the endpoints as they were, and publishes to them. */
  const prepare = async () => {
    round++
    for (const id of endpoints)
      await ask("PUT", `${root}/endpoints/${id}`, {
        url: id === "good" ? receiver : `${receiver}/refused`,
        types: ["invoice.*"],
        retry: retryOf(id),
        circuit: { failures: 10_000, rate: "none", permanentFailures: 1_000_000 }
      })
    for (const id of endpoints)
      for (const action of ["enable", "resume"])
        await ask("POST", `${root}/endpoints/${id}/${action}`)
    for (const provider of sources)
      await ask("POST", `${root}/sources/${provider}`, { provider, secrets: ["whsec_of_a_source"] })
    const events = [1, 2].map((n) => ({ type: "invoice.paid", id: `i${round}-${n}`, data: { n } }))
    await ask("POST", `${root}/events`, events)
    await ask("POST", `${root}/tokens`, { scopes: ["events:publish"], name: `round ${round}` })
    await until(async () => {
      const found = await listed(`${root}/dead-letters?limit=1`, "deadLetters", "id")
      return found.length > 0
    }, "no delivery was dead-lettered")
  }

  const isDelivered = async (event: string): Promise<boolean> => {
    const { rounds } = await ask("GET", `${root}/deliveries/${event}.good`)
    return JSON.stringify(rounds ?? []).includes('"delivered"')
  }

  /** Jobs of the kind that an operation is about. */
  const jobsOf = async ({ path }: Operation): Promise<ReadonlyArray<string>> => {
    const list = path.replace("/{job}", "").replace("{tenant}", tenant)
    const endpoint = list.endsWith("replays") ? "good" : "bad"
    if (list.endsWith("/recoveries"))
      await ask("POST", `${root}/endpoints/${endpoint}/recover`, { since: "2020-01-01T00:00:00Z" })
    else await ask("POST", list, list.endsWith("audits") ? {} : { endpoint })
    const { jobs } = await ask("GET", list)
    return Array.isArray(jobs) ? jobs.map(({ id }: { readonly id: unknown }) => String(id)) : []
  }

  /** Where the second page of a list begins. */
  const cursorsOf = async ({ path }: Operation): Promise<ReadonlyArray<string>> => {
    const list = path.replace("{tenant}", tenant).replace("{id}", endpoints[0] ?? "")
    const { next } = await ask("GET", `${list}?limit=1`)
    return typeof next === "string" ? [next] : []
  }

  let dead: ReadonlyArray<string> = []
  let tokens: ReadonlyArray<string> = []

  /** @param isChanged whether something may have changed since the last time. */
  return async (operation: Operation, isChanged: boolean): Promise<Hints> => {
    if (isChanged) {
      await prepare()
      dead = await listed(`${root}/dead-letters?limit=200`, "deadLetters", "id")
      tokens = (await listed(`${root}/tokens`, "tokens", "id")).filter((id) => id !== own)
    }
    const events = [1, 2].map((n) => `${tenant}.i${round}-${n}`)
    const isOfSources = operation.path.includes("/sources")
    const adds = operation.operationId === "sources.add"
    const removes = operation.operationId?.endsWith(".remove") === true
    if (removes)
      for (const id of removed)
        await (isOfSources
          ? ask("POST", `${root}/sources/${id}`, { provider: "stripe", secrets: ["whsec_gone"] })
          : ask("PUT", `${root}/endpoints/${id}`, { url: receiver }))
    if (/\{(?:event|delivery)\}/.test(operation.path))
      for (const event of events) await until(() => isDelivered(event), "no event was delivered")
    return {
      tenant: [tenant],
      endpoint: endpoints,
      id: adds ? [...sources, ...added] : removes ? removed : isOfSources ? sources : endpoints,
      event: events,
      type: ["invoice.paid", "other"],
      delivery: events.flatMap((event) => endpoints.map((endpoint) => `${event}.${endpoint}`)),
      cursor: operation.parameters?.some(({ name }) => name === "cursor")
        ? await cursorsOf(operation)
        : [],
      number: operation.path.includes("/quarantine")
        ? await listed(`${root}/quarantine`, "quarantined", "number")
        : dead,
      job: operation.path.includes("{job}") ? await jobsOf(operation) : [],
      token: tokens
    }
  }
}
