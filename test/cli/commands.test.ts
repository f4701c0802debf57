import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Webhook } from "standardwebhooks"
import { afterAll, beforeAll } from "vitest"
import { Broker } from "../../src/broker/connection.ts"
import { presetNames } from "../../src/policy/presets.ts"
import { endpoint, history, installation, nth } from "../engine.ts"
import type { TestServer } from "../nats-server.ts"
import { startServer } from "../nats-server.ts"
import { receiver } from "../receiver.ts"
import { run, start } from "./running.ts"

let server: TestServer
beforeAll(async () => {
  server = await startServer()
})
afterAll(() => server.stop())

/** An installation and the flags that name it. */
const place = () => {
  const there = installation(server)
  const { eventRoot, prefix, url } = there
  return { ...there, flags: ["--nats", url, "--prefix", prefix, "--events", eventRoot] }
}

const program = join(import.meta.dirname, "../../src/cli/main.ts")

const parse = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
)

describe("petrel", () => {
  it.live("says its version, and lists its commands in its help", () =>
    Effect.gen(function* () {
      const [version, help] = yield* Effect.all([run("--version"), run("--help")], {
        concurrency: 2
      })
      assert.match(nth(version.out, 0), /^petrel \d+\.\d+\.\d+$/)
      const text = help.out.join("\n")
      for (const name of ["dev", "init", "worker", "endpoint", "publish", "presets", "history"])
        assert.match(text, new RegExp(`^ +${name} `, "m"))
      assert.deepStrictEqual([version.code, help.code], [0, 0])
    })
  )

  it.live("shows its help where a group of commands is called without one", () =>
    Effect.gen(function* () {
      const { code, err, out } = yield* run("dead")
      assert.deepStrictEqual([code, err], [0, []])
      assert.match(out.join("\n"), /^ +list +List deliveries/m)
    })
  )

  it.live("answers a wrong invocation with one line that says what to do, and no help", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [args: ReadonlyArray<string>, said: string]> = [
        [
          ["presets", "--jsn"],
          "petrel: there is no flag --jsn here; did you mean --json? see `petrel presets --help`"
        ],
        [
          ["publsh"],
          'petrel: there is no command "publsh"; did you mean publish? see `petrel --help`'
        ],
        ...["garbage://x", "http://127.0.0.1:4222", "nats://127.0.0.1:99999"].map(
          (url) =>
            [
              ["presets", "--nats", url],
              `petrel: --nats "${url}" must be an address such as nats://127.0.0.1:4222; see \`petrel presets --help\``
            ] as const
        ),
        [
          ["xyzzyxy"],
          'petrel: there is no command "xyzzyxy", only dev, init, worker, endpoint, publish, history, dead, alerts, presets; see `petrel --help`'
        ],
        [
          ["endpoint", "set", "acme/hook", "--timeout", "-5s"],
          "petrel: --timeout must not begin with a minus; see `petrel endpoint set --help`"
        ],
        [
          ["dev", "--nats-port", "abc"],
          'petrel: --nats-port "abc" must be a whole number; see `petrel dev --help`'
        ],
        [
          ["dev", "--data", " "],
          'petrel: --data " " must be a directory, such as .petrel; see `petrel dev --help`'
        ],
        [
          ["dev", "--data", program],
          `petrel: ${program} cannot be used for data (it is no directory): choose another directory with --data`
        ],
        [
          ["publish", "ac me", "x", "y"],
          'petrel: TENANT "ac me" must be 1 to 64 letters, digits, - or _ (and not a lone _)'
        ],
        [
          ["presets", "abc"],
          `petrel: there is no retry preset "abc". There are: ${presetNames.join(", ")}`
        ],
        [["publish", "acme"], "petrel: TYPE is missing; see `petrel publish --help`"],
        [
          ["--prefix", "a b", "presets"],
          'petrel: --prefix "a b" must be 1 to 32 letters, digits, - or _, such as PETREL_ or ACME_; see `petrel presets --help`'
        ],
        [
          ["presets", "--log-level", "loud"],
          'petrel: --log-level "loud" must be trace, debug, info, warn or error; see `petrel presets --help`'
        ],
        [
          ["init", "--replicas", "9"],
          'petrel: --replicas "9" must be a whole number from 1 to 5; see `petrel init --help`'
        ],
        [
          ["worker", "--roles", "route"],
          'petrel: --roles "route" must be router, deliver or router,deliver; see `petrel worker --help`'
        ],
        [
          ["worker", "--allow-network", "10.0.0.1/8"],
          'petrel: --allow-network "10.0.0.1/8" is not a network: the address has bits set beyond the prefix; did you mean 10.0.0.0/8?'
        ]
      ]
      const ends = yield* Effect.forEach(wrong, ([args]) => run(...args), { concurrency: 2 })
      for (const [index, { code, err, out }] of ends.entries()) {
        assert.deepStrictEqual(err, [nth(wrong, index)[1]])
        assert.deepStrictEqual(out, [])
        assert.strictEqual(code, 1)
      }
    })
  )

  it("ends quietly when the reader of its results goes away", () => {
    const { status, stderr } = spawnSync(
      "bash",
      [
        "-c",
        `"$1" "$2" presets --json | true; exit "\${PIPESTATUS[0]}"`,
        "-",
        process.execPath,
        program
      ],
      { encoding: "utf8" }
    )
    assert.strictEqual(stderr, "")
    assert.strictEqual(status, 0)
  })

  it.live("says that no broker answers, without its password", () =>
    Effect.gen(function* () {
      const { code, err } = yield* run("endpoint", "list", "--nats", "nats://me:hush@127.0.0.1:1")
      assert.strictEqual(code, 1)
      assert.strictEqual(err.length, 1)
      assert.match(
        nth(err, 0),
        /^petrel: no NATS server answers at nats:\/\/127\.0\.0\.1:1 .*petrel dev/
      )
      assert.notInclude(nth(err, 0), "hush")
    })
  )
})

describe("petrel presets", () => {
  it.live("shows each policy, as JSON one that --retry takes", () =>
    Effect.gen(function* () {
      const [text, json, unknown] = yield* Effect.all([
        run("presets", "twilio"),
        run("presets", "--json"),
        run("presets", "twillio")
      ])
      assert.deepStrictEqual(text.out, [
        "twilio",
        "  source    guide 1: a single retry, ~15 s, 15 s; ours: delay, jitter",
        "  attempts  at most 2 within 15 s",
        "  time-out  15 s",
        "  waits     5 s (jitter: equal)",
        "  in all    5 s"
      ])
      const twilio = json.out.map((line) => parse(line)).find(({ name }) => name === "twilio")
      assert.deepStrictEqual(twilio?.policy, {
        backoff: { kind: "fixed", delay: "5 seconds" },
        jitter: "equal",
        maxAttempts: 2,
        window: "15 seconds",
        retryAfterCap: "1 day",
        timeout: "15 seconds",
        statuses: { "404": "fail", "425": "fail" }
      })
      assert.strictEqual(unknown.code, 1)
      assert.match(nth(unknown.err, 0), /"twillio"; did you mean "twilio"\?/)
    })
  )
})

describe("petrel init", () => {
  it.live("makes an installation, keeps what it is not told, and changes what it is", () =>
    Effect.gen(function* () {
      const { flags, prefix } = place()
      const before = yield* run("endpoint", "list", ...flags)
      assert.match(nth(before.err, 0), /stream not found: run `petrel init` first/)

      const made = yield* run("init", "--partitions", "2", "--dead-bytes", "64MiB", ...flags)
      assert.strictEqual(made.code, 0)
      assert.strictEqual(nth(made.out, 0), `created    stream ${prefix}EVENTS`)
      assert.strictEqual(
        made.out.at(-1),
        `${prefix} is ready (2 partitions, 1 copy of each stream): 12 created, 0 updated, 0 as they were`
      )

      const changed = yield* run("init", "--event-age", "30d", ...flags)
      assert.deepStrictEqual(changed.out, [
        `updated    stream ${prefix}EVENTS: max_age`,
        `${prefix} is ready (2 partitions, 1 copy of each stream): 0 created, 1 updated, 11 as they were`
      ])

      const again = yield* run("init", ...flags, "--json")
      const changes = again.out.map((line) => parse(line))
      assert.strictEqual(changes.length, 12)
      assert.isTrue(changes.every(({ change }) => change === "unchanged"))

      const [other, cluster, order] = yield* Effect.all([
        run("init", "--partitions", "4", ...flags),
        run("init", "--replicas", "3", ...place().flags),
        run("init", "--event-dedupe", "8d", "--event-age", "7d", ...flags)
      ])
      assert.match(nth(other.err, 0), /has 2 partitions and init cannot make them 4/)
      assert.match(nth(cluster.err, 0), /--replicas 3 needs a cluster .* this broker is alone/)
      assert.match(nth(order.err, 0), /--event-dedupe \(8 d\) must not be longer than --event-age/)
      assert.deepStrictEqual([other.code, cluster.code, order.code], [1, 1, 1])
    })
  )

  it.live(
    "refuses a room for dead letters that is too small for anything, or for what is there",
    () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.gen(function* () {
          const { ask, js, names } = yield* Broker
          const tiny = yield* run("init", "--dead-bytes", "10", ...flags)
          assert.match(nth(tiny.err, 0), /--dead-bytes "10" must be at least 16 MiB/)
          const letter = new Uint8Array(1_000_000)
          for (let count = 0; count < 17; count++)
            yield* ask("publish", () => js.publish(names.subjects.dead("acme", "hook"), letter))
          const less = yield* run("init", "--dead-bytes", "16MiB", ...flags)
          assert.strictEqual(
            nth(less.err, 0),
            `petrel: --dead-bytes 16 MiB is less than the 16.2 MiB of dead letters that ${names.dead} holds`
          )
          assert.deepStrictEqual([tiny.code, less.code], [1, 1])
        })
      )
    }
  )
})

describe("petrel endpoint", () => {
  it.live("manages an endpoint from its making to its end", () => {
    const { flags, run: installed } = place()
    const petrel = (...args: ReadonlyArray<string>) => run("endpoint", ...args, ...flags)
    return installed(
      Effect.gen(function* () {
        const wrong = yield* petrel("add", "acme/hook", "--sign", "x", "--timeout", "1")
        assert.strictEqual(
          nth(wrong.err, 0),
          `petrel: --url is missing; --sign "x" must be one of standard, standard-ed25519, stripe, github, none; --timeout "1" must be a length of time such as '30 seconds', 5m or 72h`
        )

        const added = yield* petrel(
          ...[
            "add",
            "acme/hook",
            "--url",
            "https://example.com/h",
            "--types",
            "invoice.>,*.created"
          ],
          ...["--timeout", "5s", "--header", "x-key: hush", "--json"]
        )
        assert.strictEqual(added.code, 0)
        assert.match(nth(added.err, 0), /the time-out of 5 s is short/)
        const { secret, ...json } = parse(nth(added.out, 0))
        assert.match(String(secret), /^whsec_/)
        assert.match(String(json.generation), /^[0-9a-f]{16}$/)
        assert.deepInclude(json, {
          tenant: "acme",
          id: "hook",
          url: "https://example.com/h",
          types: ["invoice.>", "*.created"],
          timeout: "5 seconds",
          headers: { "x-key": "********" }
        })

        const twice = yield* petrel("add", "acme/hook", "--url", "https://example.com/h")
        assert.match(nth(twice.err, 0), /acme\/hook already: change it with `petrel endpoint set`/)

        const [shown, masked, revealed, list] = yield* Effect.all([
          petrel("show", "acme/hook"),
          petrel("show", "acme/hook", "--json"),
          petrel("show", "acme/hook", "--json", "--reveal"),
          petrel("list")
        ])
        assert.include(shown.out.join("\n"), "types       invoice.>, *.created")
        for (const { out } of [shown, masked, list]) {
          assert.notInclude(out.join("\n"), String(secret))
          assert.notInclude(out.join("\n"), "hush")
        }
        const open = parse(nth(revealed.out, 0))
        assert.deepInclude(open, {
          headers: { "x-key": "hush" },
          secrets: [{ value: secret, createdAt: json.createdAt }]
        })
        assert.strictEqual(
          nth(list.out, 1),
          "acme/hook  enabled  invoice.>,*.created  default  https://example.com/h"
        )

        const set = yield* petrel("set", "acme/hook", "--max-in-flight", "3", "--no-timeout")
        assert.deepStrictEqual(set.out, ["acme/hook is changed: max-in-flight, timeout"])
        const same = yield* petrel("set", "acme/hook", "--max-in-flight", "3")
        assert.match(nth(same.out, 0), /^acme\/hook is as it was/)

        const rotated = yield* petrel("rotate", "acme/hook", "--json", "--keep-old", "1h")
        const fresh = parse(nth(rotated.out, 0))
        assert.match(String(fresh.secret), /^whsec_/)
        assert.notStrictEqual(fresh.secret, secret)

        const off = yield* petrel("disable", "acme/hook", "--reason", "moving house")
        assert.match(nth(off.out, 0), /^acme\/hook is disabled/)
        const state = parse(nth((yield* petrel("show", "acme/hook", "--json")).out, 0))
        assert.deepInclude(state.disabled, { reason: "moving house", by: "cli" })
        const on = yield* petrel("enable", "acme/hook", "--json")
        assert.notProperty(parse(nth(on.out, 0)), "disabled")
        const { facts } = yield* Effect.tap(history, ({ until }) =>
          until((all) => all.some(({ kind }) => kind === "endpoint-enabled"))
        )
        assert.deepStrictEqual(
          facts.map(({ kind }) => kind),
          ["endpoint-disabled", "endpoint-enabled"]
        )

        const removed = yield* petrel("remove", "acme/hook")
        assert.match(nth(removed.out, 0), /^acme\/hook is removed/)
        const gone = yield* petrel("show", "acme/hook")
        assert.strictEqual(
          nth(gone.err, 0),
          "petrel: there is no endpoint acme/hook: `petrel endpoint list` shows those there are"
        )
        assert.strictEqual(gone.code, 1)
      })
    )
  })

  it.live("shows the public key where receivers verify with one", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { out } = yield* run(
          ...["endpoint", "add", "acme/hook", "--url", "https://example.com/", "--json"],
          ...["--sign", "standard-ed25519", ...flags]
        )
        const { publicKey, secret } = parse(nth(out, 0))
        assert.match(String(publicKey), /^whpk_/)
        assert.match(String(secret), /^whsk_/)
      })
    )
  })

  it.live("warns that GitHub style has room for the new signature only", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        yield* endpoint({ sign: "github", secrets: [{ value: "long-enough", createdAt: 1 }] })
        const { err, out } = yield* run("endpoint", "rotate", "acme/hook", ...flags)
        assert.match(nth(out, 0), /^acme\/hook has a new secret, which signs from now on$/)
        assert.match(nth(err, 0), /carries one signature/)
      })
    )
  })
})

describe("petrel publish", () => {
  it.live("stores the bytes it is given under an id of the tenant's, once", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const bytes = Buffer.from([0, 255, 10, 13, 128, 10])
        const { status, stdout } = spawnSync(
          process.execPath,
          [program, "publish", "acme", "report.ready", "-", "--id", "7", "--json", ...flags],
          { input: bytes, encoding: "utf8" }
        )
        assert.strictEqual(status, 0)
        assert.deepStrictEqual(parse(stdout), {
          id: "acme.7",
          tenant: "acme",
          type: "report.ready",
          seq: 1,
          duplicate: false
        })
        const { ask, jsm, names } = yield* Broker
        const stored = yield* ask("get", () => jsm.streams.getMessage(names.events, { seq: 1 }))
        assert.deepStrictEqual(Buffer.from(stored?.data ?? []), bytes)

        const again = yield* run("publish", "acme", "report.ready", "x", "--id", "acme.7", ...flags)
        assert.deepStrictEqual(again.out, ["acme.7"])
        assert.match(nth(again.err, 0), /has an event of this id already, stored as 1/)

        const made = yield* run("publish", "acme", "report.ready", "grüße", ...flags)
        assert.match(nth(made.out, 0), /^acme\.evt_[0-9a-f]{24}$/)
        const next = yield* ask("get", () => jsm.streams.getMessage(names.events, { seq: 2 }))
        assert.strictEqual(Buffer.from(next?.data ?? []).toString(), "grüße")
      })
    )
  })

  it.live("explains what cannot be stored", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { names } = yield* Broker
        const { status, stderr } = spawnSync(
          process.execPath,
          [program, "publish", "acme", "report.ready", "-", ...flags],
          { input: Buffer.alloc(1_000_000), encoding: "utf8" }
        )
        assert.strictEqual(status, 1)
        assert.include(
          stderr,
          `976.6 KiB and its headers are more than the 960 KiB that ${names.events}`
        )
        const wrong = yield* run("publish", "a.b", "invoice.*", "{}", "--id", "x y", ...flags)
        assert.match(
          nth(wrong.err, 0),
          /^petrel: TENANT "a\.b" .*; TYPE "invoice\.\*" .*; --id "x y" /
        )
        const nowhere = yield* run("publish", "acme", "invoice.paid", "{}", ...place().flags)
        assert.match(
          nth(nowhere.err, 0),
          /^petrel: no stream on this broker takes .*: run `petrel init`/
        )
      })
    )
  })
})

describe("petrel worker", () => {
  it.live("delivers what is published, and the next one takes over when it is told to stop", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { received, requests, url } = yield* receiver()
        const added = yield* run("endpoint", "add", "acme/hook", "--url", url, "--json", ...flags)
        const options = ["--allow-network", "127.0.0.0/8", "--json", ...flags]
        const first = yield* start("worker", "--id", "w1", ...options)
        yield* first.until((out) => out.length > 0)
        assert.deepStrictEqual(parse(nth(first.out, 0)), {
          event: "ready",
          worker: "w1",
          roles: ["router", "deliver"],
          delivering: true
        })
        const second = yield* start("worker", "--id", "w2", ...options)
        yield* second.until((out) => out.length > 0)
        assert.strictEqual(parse(nth(second.out, 0)).delivering, false)

        const { out } = yield* run("publish", "acme", "invoice.paid", '{"total":42}', ...flags)
        yield* received(1)
        const request = nth(requests, 0)
        assert.strictEqual(request.headers["webhook-id"], nth(out, 0))
        new Webhook(String(parse(nth(added.out, 0)).secret)).verify(
          request.body.toString(),
          request.headers as Record<string, string>
        )

        yield* first.signal("SIGTERM")
        assert.strictEqual(yield* first.ended, 0)
        yield* second.until((lines) => lines.length > 1)
        assert.deepStrictEqual(parse(nth(second.out, 1)), { event: "delivering", worker: "w2" })
        yield* second.signal("SIGINT")
        assert.strictEqual(yield* second.ended, 0)
      })
    )
  })

  it.live("finishes what is in flight when it is told to stop", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        let release = () => {}
        const asked = new Promise<void>((resolve) => {
          release = resolve
        })
        const { received, requests, url } = yield* receiver({
          answer: async () => {
            await asked
            return { status: 204 }
          }
        })
        yield* endpoint({ url })
        const facts = yield* history
        const worker = yield* start("worker", "--allow-network", "127.0.0.0/8", ...flags)
        yield* worker.until((out) => out.length > 0)
        yield* run("publish", "acme", "invoice.paid", "{}", ...flags)
        yield* received(1)
        yield* worker.signal("SIGTERM")
        yield* worker.until((_, err) => err.some((line) => line.includes("stopping")))
        release()
        assert.strictEqual(yield* worker.ended, 0)
        yield* facts.count("delivered", 1)
        assert.strictEqual(requests.length, 1)
      })
    )
  })

  it.live("ends at once when it is told a second time", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { received, url } = yield* receiver({ answer: () => undefined })
        yield* endpoint({ url })
        const worker = yield* start("worker", "--allow-network", "127.0.0.0/8", ...flags)
        yield* worker.until((out) => out.length > 0)
        yield* run("publish", "acme", "invoice.paid", "{}", ...flags)
        yield* received(1)
        yield* worker.signal("SIGTERM")
        // Twice within half a second counts as once: a terminal and a wrapper both pass it on.
        yield* Effect.raceFirst(
          worker.ended,
          Effect.forever(Effect.andThen(Effect.sleep("100 millis"), worker.signal("SIGTERM")))
        )
        assert.strictEqual(yield* worker.ended, 143)
      })
    )
  })

  it.live.runIf(process.platform === "linux")(
    "stops when npm's shell, which it was started from, is gone",
    () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.promise(async () => {
          const worker = [process.execPath, program, "worker", ...flags]
          const shell = spawn("sh", ["-c", '"$0" "$@"; exit 7', ...worker], {
            stdio: ["ignore", "pipe", "pipe"],
            env: { ...process.env, npm_command: "exec" }
          })
          const said: Array<string> = []
          shell.stderr.on("data", (chunk) => said.push(String(chunk)))
          await once(shell.stdout, "data")
          shell.kill("SIGTERM")
          // Closed when nobody is left who could write to it: the worker has ended, too.
          await once(shell, "close")
          assert.include(said.join(""), "stopping")
        })
      )
    }
  )
})
