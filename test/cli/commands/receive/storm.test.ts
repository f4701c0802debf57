import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Provider, ProviderEvent } from "../../../../src/providers/provider.ts"
import { provider } from "../../../../src/providers/providers.ts"
import type { ProviderSettings } from "../../../../src/providers/settings.ts"
import { whsec } from "../../../providers/sample.ts"
import { parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"

/** How a receiver of the tests differs from a good one. */
interface Flaws {
  readonly takesAll?: boolean
  readonly refusesRepeats?: boolean
  /** The first request of each event is answered with 503. */
  readonly isSlowToTake?: boolean
  /** After so many requests it answers nothing any more. */
  readonly endsAfter?: number
}

const maxBytes = 1_000_000

/** Receives as an application does: verifies, takes each event once, and refuses what is too large. */
const startReceiver = (one: Provider, flaws: Flaws) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const effects = new Map<string, number>()
      const events: Array<ProviderEvent> = []
      const seen = new Set<string>()
      let [requests, cutOff] = [0, 0]
      const server: Server = createServer((request, response) => {
        requests += 1
        if (requests > (flaws.endsAfter ?? Number.POSITIVE_INFINITY)) {
          request.socket.destroy()
          return
        }
        const chunks: Array<Buffer> = []
        let bytes = 0
        const answer = (status: number, headers = {}) => response.writeHead(status, headers).end()
        request.on("error", () => undefined)
        request.on("aborted", () => {
          cutOff += 1
        })
        request.on("data", (chunk: Buffer) => {
          bytes += chunk.length
          if (bytes <= maxBytes || flaws.takesAll) chunks.push(chunk)
          else if (!response.headersSent) answer(413, { connection: "close" })
        })
        request.on("end", async () => {
          if (response.headersSent) return
          const received = {
            method: request.method ?? "",
            url: request.url ?? "",
            headers: request.headers as Record<string, string>,
            body: Buffer.concat(chunks)
          }
          if (flaws.takesAll) return answer(200)
          if (!(await one.verify(received, Date.now())).ok) return answer(401)
          const reading = one.read(received)
          if (!reading.ok) return answer(422)
          const [event] = reading.events
          const id = event?.id ?? "none"
          if (flaws.isSlowToTake && !seen.has(id)) {
            seen.add(id)
            return answer(503, { "retry-after": "0" })
          }
          if (effects.has(id)) return answer(flaws.refusesRepeats ? 409 : 200)
          effects.set(id, (effects.get(id) ?? 0) + 1)
          if (event !== undefined) events.push(event)
          return answer(200)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      return { server, effects, events, url: `http://127.0.0.1:${port}/in`, cutOff: () => cutOff }
    }),
    ({ server }) =>
      Effect.sync(() => {
        server.close()
        server.closeAllConnections()
      })
  )

const secret = whsec(7).signing

interface Report {
  readonly taken: number
  readonly events: number
  readonly faults: ReadonlyArray<string>
  readonly isCutShort: boolean
  readonly kinds: Readonly<
    Record<string, { readonly sent: number; readonly answers: Readonly<Record<string, number>> }>
  >
}

const stormOf = (count: number, url: string, ...flags: ReadonlyArray<string>) =>
  Effect.map(
    run(
      ...["receive", "--storm", url, "--json", "--seed", "7", "--count", String(count)],
      ...["--huge", "2", ...flags]
    ),
    ({ code, err, out }) => ({ code, err, report: parse(out[0] ?? "{}") as unknown as Report })
  )

const ofPetrel = (flaws: Flaws = {}) =>
  startReceiver(provider("petrel", { secrets: [secret] }), flaws)

describe("petrel receive --storm", () => {
  it.live("finds nothing wrong with a receiver that does as it should", () =>
    Effect.gen(function* () {
      const { cutOff, effects, events, url } = yield* ofPetrel({ isSlowToTake: true })
      const { code, err, report } = yield* stormOf(60, url, "--secret", secret)
      assert.deepStrictEqual([code, err, report.faults], [0, [], []])
      assert.deepInclude(report, { taken: 60, events: 60, isCutShort: false })
      // No effect of what was forged, and each of the events once.
      assert.sameMembers(
        [...effects.keys()],
        Array.from({ length: 60 }, (_, number) => `storm-7-${number}`)
      )
      assert.deepStrictEqual(new Set(effects.values()), new Set([1]))
      const { kinds } = report
      for (const kind of ["stale", "future", "unsigned", "foreign", "forged"])
        assert.deepStrictEqual(kinds[kind]?.answers, { 401: 6 }, kind)
      assert.isAbove(kinds.repeat?.answers[200] ?? 0, 12)
      assert.isAbove(kinds.first?.answers[503] ?? 0, 20)
      assert.isUndefined(kinds.oversized?.answers[200])
      assert.isAbove(cutOff(), 0)
      // They came out of order.
      const numbers = events.map(({ id }) => Number(id?.split("-").at(-1)))
      assert.notDeepEqual(
        numbers,
        numbers.toSorted((a, b) => a - b)
      )
    }).pipe(Effect.scoped)
  )

  it.live("says what a receiver takes that it should not, and what it refuses", () =>
    Effect.gen(function* () {
      const taking = yield* ofPetrel({ takesAll: true })
      const all = yield* stormOf(60, taking.url, "--secret", secret)
      assert.strictEqual(all.code, 1)
      assert.match(all.err.join(" "), /does not do what it should: 6 faults/)
      assert.match(
        all.report.faults.join("\n"),
        /^it took 6 of 6 requests that were signed an hour ago$/m
      )
      assert.match(all.report.faults.join("\n"), /^it took 6 of 6 requests without a signature$/m)
      assert.match(all.report.faults.join("\n"), /^it took 1 of 1 request with a huge body$/m)
      const refusing = yield* ofPetrel({ refusesRepeats: true })
      const repeats = yield* stormOf(60, refusing.url, "--secret", secret)
      assert.match(
        repeats.report.faults.join("\n"),
        /^it refused \d+ repeats \(409\): a sender may not/m
      )
      const ending = yield* ofPetrel({ endsAfter: 30 })
      const ended = yield* stormOf(60, ending.url, "--secret", secret, "--for", "2s")
      assert.strictEqual(ended.code === 1 || ended.report.isCutShort, true)
      assert.isBelow(ended.report.taken, 60)
    }).pipe(Effect.scoped)
  )

  it.live(
    "signs as each provider does whose receivers know the secret",
    () =>
      Effect.gen(function* () {
        const scheme = {
          header: "x-acme-mac",
          signed: "{method}{url}{id}{timestamp}{body}",
          timestampHeader: "x-acme-time",
          id: "header:x-acme-id",
          type: "body:event.type"
        }
        const others: Readonly<Record<string, ReadonlyArray<string>>> = {
          hmac: ["--scheme", JSON.stringify(scheme)],
          github: ["--type", "issues.opened"]
        }
        const names = [
          ...["standard-webhooks", "stripe", "github", "gitlab", "shopify", "slack", "twilio"],
          ...["paddle", "square", "linear", "hubspot", "zoom", "mailgun", "meta", "x", "hmac"]
        ]
        for (const name of names) {
          const key = name === "standard-webhooks" || name === "gitlab" ? secret : "sealing-wax"
          // The receiver's URL is only known once it listens.
          const late: { made?: Provider } = {}
          const { effects, url } = yield* startReceiver(
            {
              ...({ name, repeatsForMs: 0, retries429: true } as const),
              verify: (request, now) => late.made?.verify(request, now) ?? assert.fail(),
              read: (request) => late.made?.read(request) ?? assert.fail()
            },
            {}
          )
          const settings: ProviderSettings = {
            secrets: [key],
            ...(["twilio", "square", "hubspot", "hmac"].includes(name) && { publicUrl: url }),
            ...(name === "hmac" && { scheme })
          }
          late.made = provider(name, settings)
          const flags = ["--provider", name, "--secret", key]
          const { code, report } = yield* stormOf(10, url, ...flags, ...(others[name] ?? []))
          assert.deepStrictEqual([name, code, report.faults], [name, 0, []])
          // Zoom gives its events no id.
          if (name !== "zoom") assert.lengthOf([...effects.keys()], 10, name)
        }
      }).pipe(Effect.scoped),
    60_000
  )

  it.live("makes bodies of a file, and prints a table", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "petrel-storm-"))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true })))
      const file = join(folder, "body.json")
      writeFileSync(file, '{"total":42}')
      const { events, url } = yield* ofPetrel()
      const flags = [
        "--secret",
        secret,
        "--huge",
        "0",
        "--count",
        "10",
        "--body",
        file,
        "--type",
        "invoice.paid"
      ]
      const { code, err, out } = yield* run("receive", "--storm", url, "--seed", "1", ...flags)
      assert.strictEqual(code, 0)
      assert.match(err.join(" "), /Sends 10 events as Petrel does to http.* \(--seed 1\)/)
      assert.match(out.join("\n"), /^each event, out of order +taken +10 .* 10 × 200$/m)
      assert.match(out.join("\n"), /^signed an hour ago +refused +1 .* 1 × 401$/m)
      assert.match(out.join("\n"), /^Nothing was taken that should not be\.$/m)
      const [{ body, type } = assert.fail()] = events
      assert.deepInclude(JSON.parse(Buffer.from(body).toString()), { total: 42 })
      assert.strictEqual(type, "invoice.paid")
      writeFileSync(file, "[1]")
      const wrong = yield* run("receive", "--storm", url, ...flags)
      assert.match(`${wrong.code} ${wrong.err}`, /^2 .*--body .* must be a JSON object/)
    }).pipe(Effect.scoped)
  )

  it.live("ends when its time is over, and says so", () =>
    Effect.gen(function* () {
      const silent = createServer(() => undefined)
      yield* Effect.addFinalizer(() => Effect.sync(() => silent.closeAllConnections()))
      const url = yield* Effect.promise(
        () =>
          new Promise<string>((resolve) => {
            silent.listen(0, "127.0.0.1", () => {
              const address = silent.address()
              resolve(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/`)
            })
          })
      )
      const { code, report } = yield* stormOf(60, url, "--secret", secret, "--for", "300ms")
      assert.deepInclude(report, { isCutShort: true, taken: 0 })
      assert.deepStrictEqual(report.faults, ["it took no event in all that time"])
      assert.strictEqual(code, 1)
      silent.close()
    }).pipe(Effect.scoped)
  )

  it.live(
    "says why there is no answer, and that events were not taken though its time is over",
    () =>
      Effect.gen(function* () {
        const { server, url } = yield* ofPetrel()
        yield* Effect.promise(() => new Promise((closed) => server.close(closed)))
        const flags = ["--secret", secret, "--for", "1s"]
        const { code, out } = yield* run("receive", "--storm", url, ...flags, "--seed", "7")
        const shown = out.join("\n")
        assert.match(shown, /the time was over before all were sent/)
        assert.match(shown, /\nNo answer: \d+ × connect ECONNREFUSED 127\.0\.0\.1:\d+\./)
        assert.match(shown, /NOT RIGHT: it took no event in all that time/)
        assert.notInclude(shown, "Nothing was taken")
        assert.strictEqual(code, 1)
      }).pipe(Effect.scoped)
  )

  it.live("says in one sentence what makes no sense", () =>
    Effect.gen(function* () {
      const url = "http://127.0.0.1:9/"
      const said = (...args: ReadonlyArray<string>) =>
        Effect.map(run("receive", ...args), ({ code, err }) => `${code} ${err.join(" ")}`)
      assert.match(yield* said("--count", "5"), /^2 .*--count goes with --storm/)
      assert.match(yield* said("--storm", "nowhere"), /must be a URL/)
      assert.match(yield* said("--storm", url), /^2 .*--secret is missing/)
      assert.match(yield* said("--storm", url, "--count", "0"), /must be from 1 to 100000/)
      assert.match(yield* said("--storm", url, "--for", "1h"), /at most 10 minutes/)
      assert.match(yield* said("--storm", url, "--drop"), /--drop is for a receiver/)
      const key = "ab".repeat(32)
      const discord = yield* said("--storm", url, "--provider", "discord", "--secret", key)
      assert.match(discord, /^2 .*only Discord can sign its requests/)
      const publicKey = `whpk_${Buffer.alloc(32, 1).toString("base64")}`
      assert.match(yield* said("--storm", url, "--secret", publicKey), /secret that signs/)
    })
  )
})
