import { setTimeout } from "node:timers/promises"
import { Pool } from "pg"
import { postgresStore } from "../../../src/receiver/stores/postgres.ts"
import type { PostgresServer } from "../../kit/postgres-server.ts"
import { event } from "../sender.ts"
import { type Receivers, runReceivers } from "./receivers.ts"

/* Senders that repeat, receivers that are killed, a database that is killed; and what has to be true at the end. */

export interface StorySettings {
  readonly events: number
  readonly senders: number
  readonly receivers: number
  /** Random kills of receiver processes. */
  readonly kills: number
  readonly databaseKills: number
  /** Share of the events that are sent again after they were taken. */
  readonly repeats: number
  /** A step at which each of the first receivers kills itself. */
  readonly killAt?: string
}

export interface StoryResult {
  readonly seconds: number
  readonly kills: number
  readonly databaseKills: number
  readonly requests: number
  /** Requests without an answer, or answered other than 2xx. */
  readonly unanswered: number
  readonly refused: number
  /** Events that were answered 2xx and are neither stored nor done. */
  readonly lost: number
  /** Events without their effect. */
  readonly missing: number
  /** Effects beyond the first of their event. */
  readonly doubled: number
  /** Effects before that of an earlier event of their subject. */
  readonly outOfOrder: number
  readonly dead: number
  readonly states: Readonly<Record<string, number>>
  readonly mostAttempts: number
  /** Receivers that killed themselves at the step. */
  readonly selfKills: number
}

const subjectsOfSender = 10

interface Traffic {
  requests: number
  unanswered: number
  refused: number
  taken: number
}

const send = async (
  receivers: Receivers,
  request: RequestInit,
  traffic: Traffic
): Promise<boolean> => {
  traffic.requests += 1
  try {
    const response = await fetch(await receivers.pick(), {
      ...request,
      signal: AbortSignal.timeout(20_000)
    })
    await response.arrayBuffer()
    if (response.ok) return true
    traffic.refused += 1
  } catch {
    traffic.unanswered += 1
  }
  return false
}

/** Sends one event until it is taken, as senders do, though sooner. */
const deliver = async (receivers: Receivers, make: () => RequestInit, traffic: Traffic) => {
  while (!(await send(receivers, make(), traffic))) await setTimeout(20 + Math.random() * 60)
}

const rowsOf = async (pool: Pool, query: string): Promise<ReadonlyArray<Record<string, number>>> =>
  (await pool.query(query)).rows

const numberOf = async (pool: Pool, query: string): Promise<number> =>
  Number((await rowsOf(pool, `select (${query}) as n`))[0]?.n ?? 0)

/** Tells the story once. Fails where it does not come to its end within ten minutes. */
export const tellCrashStory = async (
  server: PostgresServer,
  database: string,
  settings: StorySettings
): Promise<StoryResult> => {
  const began = Date.now()
  const url = await server.database(database)
  const pool = new Pool({ connectionString: url })
  pool.on("error", () => undefined)
  await postgresStore(pool).migrate()
  await pool.query(
    "create table effects (id bigint generated always as identity, key text, subject text, number int)"
  )
  const receivers = await runReceivers(settings.receivers, {
    PETREL_TEST_DATABASE: url,
    ...(settings.killAt !== undefined && { PETREL_TEST_KILL_AT: settings.killAt })
  })
  const traffic: Traffic = { requests: 0, unanswered: 0, refused: 0, taken: 0 }
  let kills = 0
  let databaseKills = 0
  let restarting: Promise<void> | undefined

  /** Kills by progress, so that all of the story is under fire. */
  const disturb = () => {
    const share = traffic.taken / settings.events
    if (kills < settings.kills && share >= (kills + 0.5) / settings.kills && receivers.kill())
      kills += 1
    if (
      restarting === undefined &&
      databaseKills < settings.databaseKills &&
      share >= (databaseKills + 0.5) / settings.databaseKills
    ) {
      databaseKills += 1
      restarting = server
        .kill9()
        .then(() => server.restart())
        .finally(() => {
          restarting = undefined
        })
    }
  }

  const perSender = Math.ceil(settings.events / settings.senders)
  const sender = async (name: number) => {
    const repeats: Array<Promise<unknown>> = []
    for (let number = 0; number < perSender; number++) {
      const id = `evt-${name}-${number}`
      const isQuick = number % 2 === 0
      const content = {
        number,
        subject: `cus-${name}-${number % subjectsOfSender}`,
        fails: number % 6 === 3
      }
      const make = () => event(id, isQuick ? "quick.paid" : "slow.paid", content)
      await deliver(receivers, make, traffic)
      traffic.taken += 1
      disturb()
      // A repeat comes whenever it comes, whatever else is sent.
      if (Math.random() < settings.repeats)
        repeats.push(setTimeout(Math.random() * 300).then(() => send(receivers, make(), traffic)))
    }
    await Promise.all(repeats)
  }
  try {
    await Promise.all(Array.from({ length: settings.senders }, (_, name) => sender(name)))
    while (kills < settings.kills) {
      if (receivers.kill()) kills += 1
      await setTimeout(50)
    }
    await restarting
    const sent = perSender * settings.senders
    const deadline = Date.now() + 600_000
    const open = () =>
      numberOf(pool, "select count(*) from petrel_inbox where state = 'received'").catch(() => 1)
    while ((await open()) > 0) {
      if (Date.now() > deadline) throw new Error("the inbox was not worked off in ten minutes")
      await setTimeout(50)
    }
    const states = Object.fromEntries(
      (await rowsOf(pool, "select state, count(*) as n from petrel_inbox group by state")).map(
        ({ n, state }) => [String(state), Number(n)]
      )
    )
    const effects = await numberOf(pool, "select count(*) from effects")
    const distinct = await numberOf(pool, "select count(distinct key) from effects")
    return {
      seconds: (Date.now() - began) / 1_000,
      ...{ kills, databaseKills, states, selfKills: receivers.ended() },
      ...{
        requests: traffic.requests,
        unanswered: traffic.unanswered,
        refused: traffic.refused
      },
      lost: sent - Object.values(states).reduce((sum, count) => sum + count, 0),
      missing: sent - distinct,
      doubled: effects - distinct,
      outOfOrder: await numberOf(
        pool,
        "select count(*) from (select number < lag(number) over (partition by subject order by id) as is_late from effects where subject is not null) e where is_late"
      ),
      dead: states.dead ?? 0,
      mostAttempts: await numberOf(pool, "select max(attempts) from petrel_inbox")
    }
  } finally {
    await receivers.stop()
    await pool.end()
  }
}
