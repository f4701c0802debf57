import { createHmac } from "node:crypto"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { Effect } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { start as startPetrel } from "../cli/running.ts"
import {
  type ByHand,
  startDjango,
  startLaravel,
  withoutDjango,
  withoutLaravel
} from "./by-hand-receivers.ts"

const secret = `whsec_${Buffer.alloc(24, "now").toString("base64")}`
const oldSecret = `whsec_${Buffer.alloc(24, "old").toString("base64")}`

interface Sending {
  readonly id: string
  readonly type?: string
  readonly body: string | Uint8Array
  readonly at?: number
  readonly by?: string
  readonly signature?: string
}

const signature = (id: string, at: number, body: Uint8Array, by: string): string => {
  const key = Buffer.from(by.replace("whsec_", ""), "base64")
  return `v1,${createHmac("sha256", key).update(`${id}.${at}.`).update(body).digest("base64")}`
}

const nowSeconds = () => Math.floor(Date.now() / 1_000)

const paid = (customer: string, cents: number) =>
  JSON.stringify({ invoice: `inv_${customer}`, customer, cents })
const updated = (customer: string, version: number) =>
  JSON.stringify({ customer, version, email: `${version}@example.com` })

const examples = [
  { name: "Django, on PostgreSQL", without: withoutDjango, start: startDjango },
  { name: "Laravel, on MariaDB", without: withoutLaravel, start: startLaravel }
]

describe.each(examples)("The inbox by hand in $name", ({ start, without }) => {
  let app: ByHand
  beforeAll(async () => {
    if (without === undefined) app = await start(`${secret} ${oldSecret}`)
  }, 300_000)
  afterAll(() => app?.stop())

  const send = async (sending: Sending) => {
    const { at = nowSeconds(), by = secret, id, type = "invoice.paid" } = sending
    const body = Buffer.from(sending.body)
    const answer = await fetch(app.url, {
      method: "POST",
      body,
      headers: {
        ...{ "webhook-id": id, "webhook-timestamp": `${at}`, "webhook-event-type": type },
        "webhook-signature": sending.signature ?? signature(id, at, body, by),
        "content-type": "application/json"
      }
    })
    await answer.arrayBuffer()
    return answer
  }
  const statusOf = async (sending: Sending) => (await send(sending)).status

  const rowOf = async (id: string) => {
    const [row] = await app.query(
      `select id, state, attempts, receipts, error, ${app.bodyHex} as hex from ${app.table} where ${app.key} = '${id}'`
    )
    return row
  }
  const customerOf = async (id: string) => {
    const [row] = await app.query(`select * from ${app.customers} where id = '${id}'`)
    return row === undefined
      ? undefined
      : { email: `${row.email}`, paid_cents: Number(row.paid_cents) }
  }
  const until = async (what: string, holds: () => Promise<boolean>) => {
    const deadline = Date.now() + 60_000
    while (!(await holds())) {
      if (Date.now() > deadline) throw new Error(`not within a minute: ${what}`)
      await setTimeout(50)
    }
  }
  const untilState = (id: string, state: string) =>
    until(`${id} is ${state}`, async () => (await rowOf(id))?.state === state)
  const whileWorking = async (use: () => Promise<void>) => {
    const worker = app.worker()
    try {
      await use()
    } finally {
      await worker.kill("SIGTERM")
    }
  }

  it.skipIf(without !== undefined)(
    "takes an event once that comes twenty times at once",
    async () => {
      const id = "acme.once"
      const sent = Array.from({ length: 20 }, () => statusOf({ id, body: paid("once", 500) }))
      assert.deepStrictEqual([...new Set(await Promise.all(sent))], [200])
      assert.deepInclude(await rowOf(id), { state: "received", receipts: 20 })
      await whileWorking(() => untilState(id, "done"))
      assert.strictEqual(await statusOf({ id, body: paid("once", 500) }), 200)
      assert.deepInclude(await rowOf(id), { state: "done", receipts: 21, attempts: 1, hex: null })
      assert.deepInclude(await customerOf("once"), { paid_cents: 500 })
    }
  )

  it.skipIf(without !== undefined)(
    "refuses what is not signed, and stores nothing of it",
    async () => {
      const id = "acme.refused"
      const body = paid("refused", 1)
      const at = nowSeconds()
      const good = signature(id, at, Buffer.from(body), secret)
      const refused = [
        { id, body, by: `whsec_${Buffer.alloc(24, "other").toString("base64")}` },
        { id, body, at: at - 400 },
        { id, body, at: at + 400 },
        { id, body: paid("refused", 1_000_000), at, signature: good },
        { id: "acme.another", body, at, signature: good },
        { id, body, signature: "" },
        { id, body, signature: "v1" },
        { id, body, signature: "v1,é" }
      ]
      for (const one of refused) assert.strictEqual(await statusOf(one), 401, JSON.stringify(one))
      assert.isUndefined(await rowOf(id))
      assert.isUndefined(await rowOf("acme.another"))
      assert.strictEqual(await statusOf({ id, body, by: oldSecret }), 200)
      assert.strictEqual(
        await statusOf({ id, body, at, signature: `v1a,AAAA v1,AAAA ${good}` }),
        200
      )
      assert.deepInclude(await rowOf(id), { receipts: 2 })
    }
  )

  it.skipIf(without !== undefined)("tells ids apart that differ in case", async () => {
    assert.strictEqual(await statusOf({ id: "acme.Case", body: paid("case", 1) }), 200)
    assert.strictEqual(await statusOf({ id: "acme.case", body: paid("case", 2) }), 200)
    await whileWorking(() => untilState("acme.case", "done"))
    assert.deepInclude(await customerOf("case"), { paid_cents: 3 })
  })

  it.skipIf(without !== undefined)(
    "stores the bytes as they came, and what cannot be read ends as dead",
    async () => {
      const bytes = Uint8Array.from({ length: 70_000 }, (_, at) => (at * 7) % 256)
      const id = "acme.bytes"
      assert.strictEqual(await statusOf({ id, body: bytes }), 200)
      assert.deepInclude(await rowOf(id), { hex: Buffer.from(bytes).toString("hex") })
      await whileWorking(() => untilState(id, "dead"))
      assert.deepInclude(await rowOf(id), { attempts: 1 })
      const { id: number, error } = (await rowOf(id)) ?? {}
      assert.include(`${error}`, "is not JSON")
      assert.match(await app.command("dead"), new RegExp(`^${number} .* ${id} .*is not JSON`, "m"))
      await app.command("retry", `${number}`)
      assert.deepInclude(await rowOf(id), { state: "received", attempts: 0 })
      await whileWorking(() => untilState(id, "dead"))
    }
  )

  it.skipIf(without !== undefined)(
    "answers 503 while the database is away, and takes the repeat",
    async () => {
      const id = "acme.away"
      await app.database.kill9()
      const answer = await send({ id, body: paid("away", 7) })
      assert.strictEqual(answer.status, 503)
      assert.strictEqual(answer.headers.get("retry-after"), "30")
      const worker = app.worker()
      await app.database.restart()
      assert.strictEqual(await statusOf({ id, body: paid("away", 7) }), 200)
      await untilState(id, "done")
      await worker.kill("SIGTERM")
      assert.deepInclude(await customerOf("away"), { paid_cents: 7 })
    }
  )

  it.skipIf(without !== undefined)(
    "does the work once although its worker is killed in the middle",
    async () => {
      await send({ id: "acme.first", body: paid("killed", 1) })
      await whileWorking(() => untilState("acme.first", "done"))
      const holding = await app.session()
      await holding.query("begin")
      await holding.query(`select * from ${app.customers} where id = 'killed' for update`)
      await send({ id: "acme.killed", body: paid("killed", 20) })
      const worker = app.worker()
      await until("claimed", async () => (await rowOf("acme.killed"))?.attempts === 1)
      await worker.kill("SIGKILL")
      await holding.query("rollback")
      await holding.end()
      assert.deepInclude(await rowOf("acme.killed"), { state: "received" })
      await whileWorking(() => untilState("acme.killed", "done"))
      assert.deepInclude(await rowOf("acme.killed"), { attempts: 2 })
      assert.deepInclude(await customerOf("killed"), { paid_cents: 21 })
    }
  )

  it.skipIf(without !== undefined)(
    "takes an event once whenever its workers are killed",
    async () => {
      const ids = Array.from({ length: 120 }, (_, at) => `acme.storm-${at}`)
      for (const [at, id] of ids.entries()) await send({ id, body: paid(`storm-${at % 5}`, 1) })
      const open = async () => {
        const [row] = await app.query(
          `select count(*) as n from ${app.table} where state = 'received' and ${app.key} like 'acme.storm-%'`
        )
        return Number(row?.n)
      }
      for (let kills = 0; kills < 6 && (await open()) > 0; kills++) {
        const before = await open()
        const workers = [app.worker(), app.worker()]
        await until("some are worked off", async () => (await open()) < Math.max(before - 5, 1))
        for (const one of workers) await one.kill("SIGKILL")
      }
      const workers = [app.worker(), app.worker()]
      await until("all are worked off", async () => (await open()) === 0)
      for (const one of workers) await one.kill("SIGTERM")
      const sums = await Promise.all([0, 1, 2, 3, 4].map((at) => customerOf(`storm-${at}`)))
      assert.deepStrictEqual(
        sums.map((sum) => sum?.paid_cents),
        [24, 24, 24, 24, 24]
      )
    }
  )

  it.skipIf(without !== undefined)(
    "works in order for each customer, and lets what fails end as dead",
    async () => {
      // Two events: neither has the field that the first one's handler asks for.
      await send({ id: "acme.fails", body: JSON.stringify({ customer: "slow" }) })
      await send({ id: "acme.behind", body: paid("slow", 5) })
      await send({ id: "acme.beside", body: paid("quick", 6) })
      await whileWorking(async () => {
        await untilState("acme.beside", "done")
        await untilState("acme.behind", "done")
        assert.deepInclude(await rowOf("acme.fails"), { state: "dead", attempts: 3 })
      })
      const [fails, behind] = await app.query(
        `select finished_at from ${app.table} where ${app.key} in ('acme.fails', 'acme.behind') order by id`
      )
      assert.isAtMost(Number(fails?.finished_at), Number(behind?.finished_at))
      assert.deepInclude(await customerOf("slow"), { paid_cents: 5 })
    }
  )

  it.skipIf(without !== undefined)(
    "keeps the newer of two versions, whichever comes last",
    async () => {
      for (const version of [5, 3, 6, 6, 4])
        await send({
          ...{ id: `acme.version-${version}`, type: "customer.updated" },
          body: updated("versions", version)
        })
      await whileWorking(() => untilState("acme.version-4", "done"))
      assert.strictEqual((await customerOf("versions"))?.email, "6@example.com")
    }
  )

  it.skipIf(without !== undefined)(
    "takes what Petrel delivers",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "petrel-test-dev-"))
      const secretFile = join(folder, "secret")
      await writeFile(secretFile, secret)
      const story = Effect.gen(function* () {
        const dev = yield* startPetrel("dev", "--nats-port", "0", "--data", join(folder, "data"))
        yield* dev.until((out) => out.some((line) => line.startsWith("To look back")))
        const [, nats = ""] = /takes events at (\S+)/.exec(dev.out.join("\n")) ?? []
        const petrel = (...args: ReadonlyArray<string>) =>
          Effect.gen(function* () {
            const command = yield* startPetrel(...args, "--nats", nats)
            assert.strictEqual(yield* command.ended, 0, command.err.join("\n"))
          })
        yield* petrel("endpoint", "add", "acme/shop", "--url", app.url, "--secret-file", secretFile)
        for (const cents of [100, 23])
          yield* petrel("publish", "acme", "invoice.paid", paid("petrel", cents))
        yield* Effect.promise(() =>
          whileWorking(() =>
            until("paid", async () => (await customerOf("petrel"))?.paid_cents === 123)
          )
        )
        // Where it is killed, its broker still writes into the folder.
        yield* dev.signal("SIGINT")
        yield* dev.ended
      })
      try {
        await Effect.runPromise(Effect.scoped(story))
      } finally {
        await rm(folder, { recursive: true, force: true, maxRetries: 10 })
      }
    },
    240_000
  )

  it.skipIf(without !== undefined)(
    "takes what a storm has to be taken of, each once",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "petrel-test-storm-"))
      const body = join(folder, "body")
      await writeFile(body, paid("stormy", 1))
      const story = Effect.gen(function* () {
        const storm = yield* startPetrel(
          ...["receive", "--storm", app.url, "--secret", secret, "--json"],
          // Servers for development have few threads, and each aborted body holds one up.
          ...["--count", "50", "--concurrency", "4", "--type", "invoice.paid", "--body", body]
        )
        yield* storm.ended
        return JSON.parse(storm.out.at(-1) ?? "{}")
      })
      const report = await Effect.runPromise(Effect.scoped(story))
      await rm(folder, { recursive: true })
      assert.deepStrictEqual(report.faults, [])
      assert.deepStrictEqual(report.kinds.oversized.answers, { 413: 1 })
      const count = async (where: string) => {
        const [row] = await app.query(
          `select count(*) as n from ${app.table} where ${where} and ${app.key} like 'storm-%'`
        )
        return Number(row?.n)
      }
      const stored = await count("1 = 1")
      assert.isAbove(stored, 20)
      await whileWorking(() =>
        until("all are done", async () => (await count("state = 'done'")) === stored)
      )
      assert.strictEqual((await customerOf("stormy"))?.paid_cents, stored)
    },
    240_000
  )

  it.skipIf(without !== undefined)("removes what is done and old, and nothing else", async () => {
    const count = async (state: string) => {
      const [row] = await app.query(`select count(*) as n from ${app.table} where state ${state}`)
      return Number(row?.n)
    }
    const [done, others] = [await count("= 'done'"), await count("<> 'done'")]
    assert.isAbove(done, 100)
    assert.isAbove(others, 0)
    assert.include(await app.command("prune"), "0 removed")
    await app.query(`update ${app.table} set finished_at = '2020-01-01 00:00:00'`)
    assert.include(await app.command("prune"), `${done} removed`)
    assert.deepStrictEqual([await count("= 'done'"), await count("<> 'done'")], [0, others])
  })
})
