/* Every call of a client, once, with what it is about. */
import type { Client, Operations } from "../../src/client/client.ts"

/** What there is of the client's tenant: its endpoints are good, bad and later, its source is stripe. */
export interface There {
  readonly receiver: string
  /** An event that endpoint good got, that bad refused, and that waits for later. */
  readonly event: string
  /** Numbers of dead letters, two or more. */
  readonly dead: ReadonlyArray<number>
}

/** Calls by group and name. A call that is added and not made here does not compile. */
type Calls = {
  readonly [Group in keyof Operations]: {
    readonly [Name in keyof Operations[Group]]: () => Promise<unknown>
  }
}

const first = <A>(all: ReadonlyArray<A>): A => {
  const [one] = all
  if (one === undefined) throw new Error("there is none")
  return one
}

/** Returns the id of a job that was begun. */
const idOf = (begun: object): string => {
  if ("id" in begun && typeof begun.id === "string") return begun.id
  throw new Error(`no job: ${JSON.stringify(begun)}`)
}

/** Returns every call, in the order in which each finds what it is about. */
export const everyCall = (petrel: Client, { dead, event, receiver }: There): Calls => {
  const since = new Date()
  const delivery = `${event}.good`
  const quarantined = async (reason: "id-collision" | "unreadable") => {
    const all = (await petrel.quarantine.list()).quarantined
    return first(all.filter((one) => one.reason === reason)).number
  }
  /** A job of each kind, that is begun, listed, shown and cancelled. */
  const jobs: Record<"audit" | "recovery" | "redelivery" | "replay" | "retry", string> = {
    ...{ audit: "", recovery: "", redelivery: "", replay: "", retry: "" }
  }
  const begin = async (kind: keyof typeof jobs, begun: Promise<object>) => {
    const answer = await begun
    jobs[kind] = idOf(answer)
    return answer
  }
  let token = ""
  return {
    deliveries: {
      event: () => petrel.deliveries.event({ event }),
      eventBody: () => petrel.deliveries.eventBody({ event }),
      delivery: () => petrel.deliveries.delivery({ delivery }),
      deliveryBody: () => petrel.deliveries.deliveryBody({ delivery }),
      totals: () => petrel.deliveries.totals({ by: "endpoint" }),
      alerts: () => petrel.deliveries.alerts().page()
    },
    log: {
      list: () => petrel.log.list({ endpoint: "good" }).page(),
      attempts: () => petrel.log.attempts({ endpoint: ["good", "bad"] }).page(),
      events: () => petrel.log.events({ limit: 1 }).page(),
      stats: () => petrel.log.stats({ by: "day" }),
      endpointStats: () => petrel.log.endpointStats({ id: "good" }),
      projection: () => petrel.log.projection()
    },
    attempts: {
      test: () => petrel.attempts.test({ id: "good" }),
      retryDelivery: () => petrel.attempts.retryDelivery({ delivery: `${event}.later` }),
      retryNow: () => petrel.attempts.retryNow({ id: "later" }),
      diagnose: () => petrel.attempts.diagnose({ id: "bad" }),
      resend: () => petrel.attempts.resend({ delivery })
    },
    deadLetters: {
      list: () => petrel.deadLetters.list({ endpoint: "bad" }).page(),
      get: () => petrel.deadLetters.get({ number: first(dead) }),
      discard: () => petrel.deadLetters.discard({ number: first(dead) })
    },
    jobs: {
      redeliver: () => begin("redelivery", petrel.jobs.redeliver({ endpoint: "bad" })),
      listRedeliveries: () => petrel.jobs.listRedeliveries().page(),
      getRedelivery: () => petrel.jobs.getRedelivery({ job: jobs.redelivery }),
      cancelRedelivery: () => petrel.jobs.cancelRedelivery({ job: jobs.redelivery }),
      replay: () => begin("replay", petrel.jobs.replay({ endpoint: "good", since })),
      listReplays: () => petrel.jobs.listReplays().page(),
      getReplay: () => petrel.jobs.getReplay({ job: jobs.replay }),
      cancelReplay: () => petrel.jobs.cancelReplay({ job: jobs.replay }),
      audit: () => begin("audit", petrel.jobs.audit({ tenant: "acme" })),
      listAudits: () => petrel.jobs.listAudits().page(),
      getAudit: () => petrel.jobs.getAudit({ job: jobs.audit }),
      cancelAudit: () => petrel.jobs.cancelAudit({ job: jobs.audit })
    },
    retries: {
      retry: () => begin("retry", petrel.retries.retry({ endpoint: "later" })),
      listRetries: () => petrel.retries.listRetries().page(),
      getRetry: () => petrel.retries.getRetry({ job: jobs.retry }),
      cancelRetry: () => petrel.retries.cancelRetry({ job: jobs.retry }),
      recover: () => begin("recovery", petrel.retries.recover({ id: "bad", since })),
      listRecoveries: () => petrel.retries.listRecoveries().page(),
      getRecovery: () => petrel.retries.getRecovery({ job: jobs.recovery }),
      cancelRecovery: () => petrel.retries.cancelRecovery({ job: jobs.recovery })
    },
    endpoints: {
      list: () => petrel.endpoints.list({ state: "closed" }).page(),
      create: () => petrel.endpoints.create({ url: receiver }),
      put: () => petrel.endpoints.put({ id: "own", url: receiver, types: ["other"] }),
      get: () => petrel.endpoints.get({ id: "own" }),
      patch: () => petrel.endpoints.patch({ id: "own", maxInFlight: 3 }),
      history: () => petrel.endpoints.history({ id: "own" }).page(),
      retryPolicies: () => petrel.endpoints.retryPolicies({ id: "own" }),
      pause: () => petrel.endpoints.pause({ id: "own", reason: "a test" }),
      resume: () => petrel.endpoints.resume({ id: "own" }),
      disable: () => petrel.endpoints.disable({ id: "own" }),
      enable: () => petrel.endpoints.enable({ id: "own" }),
      rotate: () => petrel.endpoints.rotate({ id: "own" }),
      secret: () => petrel.endpoints.secret({ id: "own" }),
      remove: () => petrel.endpoints.remove({ id: "own" })
    },
    sources: {
      add: () => petrel.sources.add({ id: "own", provider: "stripe", secrets: ["whsec_own"] }),
      list: () => petrel.sources.list(),
      get: () => petrel.sources.get({ id: "own" }),
      patch: () => petrel.sources.patch({ id: "own", tolerance: "1 minute" }),
      rotate: () => petrel.sources.rotate({ id: "own", secret: "whsec_new" }),
      remove: () => petrel.sources.remove({ id: "own" })
    },
    quarantine: {
      list: () => petrel.quarantine.list(),
      get: async () => petrel.quarantine.get({ number: await quarantined("unreadable") }),
      release: async () => petrel.quarantine.release({ number: await quarantined("id-collision") }),
      releaseSeveral: () => petrel.quarantine.releaseSeveral({ reason: "id-collision" }),
      discard: async () => petrel.quarantine.discard({ number: await quarantined("unreadable") }),
      discardSeveral: () => petrel.quarantine.discardSeveral({ all: true })
    },
    settings: {
      tenant: () => petrel.settings.tenant(),
      changeTenant: () => petrel.settings.changeTenant({ maxEndpoints: 1_000 }),
      thresholds: () => petrel.settings.thresholds(),
      setThresholds: () => petrel.settings.setThresholds({ alerts: { deadLetters: 7 } }),
      presets: () => petrel.settings.presets(),
      system: () => petrel.settings.system(),
      changeSystem: () => petrel.settings.changeSystem({ maxTokens: 1_000 }),
      systemThresholds: () => petrel.settings.systemThresholds(),
      setSystemThresholds: () => petrel.settings.setSystemThresholds({ alerts: { deadLetters: 8 } })
    },
    tokens: {
      create: async () => {
        const made = await petrel.tokens.create({ scopes: ["events:publish"] })
        token = made.id
        return made
      },
      list: () => petrel.tokens.list(),
      get: () => petrel.tokens.get({ token }),
      revoke: () => petrel.tokens.revoke({ token })
    },
    portalLinks: {
      create: () => petrel.portalLinks.create({ endpoint: "good" }),
      list: () => petrel.portalLinks.list()
    },
    system: {
      status: () => petrel.system.status(),
      workers: () => petrel.system.workers(),
      outboxes: () => petrel.system.outboxes(),
      tenants: () => petrel.system.tenants().page()
    },
    health: { health: () => petrel.health.health() }
  }
}
