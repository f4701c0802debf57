import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Broker } from "../../../src/broker/broker.ts"
import { natsClients } from "../../../src/broker/clients.ts"
import { endpoint, nth, publish, quickRetry } from "../../kit/engine.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"

const place = installations()

describe("petrel init", () => {
  it.live("makes an installation, keeps what it is not told, and changes what it is", () =>
    Effect.gen(function* () {
      const { flags, prefix } = place()
      const before = yield* run("endpoint", "list", ...flags)
      assert.match(nth(before.err, 0), /stream not found: run `petrel init` first/)

      const made = yield* run("init", "--partitions", "2", "--dead-bytes", "64MiB", ...flags)
      assert.strictEqual(made.code, 0)
      assert.strictEqual(nth(made.out, 0), `created    stream ${prefix}INTAKE`)
      assert.strictEqual(
        made.out.at(-1),
        `${prefix} is ready (2 partitions, 1 copy of each stream): 21 created, 0 updated, 0 unchanged`
      )

      const changed = yield* run("init", "--event-age", "30d", ...flags)
      assert.deepStrictEqual(changed.out, [
        `updated    stream ${prefix}EVENTS: petrel-max-age-ms`,
        `${prefix} is ready (2 partitions, 1 copy of each stream): 0 created, 1 updated, 20 unchanged`
      ])

      const again = yield* run("init", ...flags, "--json")
      const changes = again.out.map((line) => parse(line))
      assert.strictEqual(changes.length, 21)
      assert.isTrue(changes.every(({ change }) => change === "unchanged"))

      const [other, cluster, order] = yield* Effect.all([
        run("init", "--partitions", "4", ...flags),
        run("init", "--replicas", "3", ...place().flags),
        run("init", "--event-dedupe", "8d", "--event-age", "7d", ...flags)
      ])
      assert.match(nth(other.err, 0), /has 2 partitions and init cannot make them 4/)
      assert.match(nth(cluster.err, 0), /--replicas 3 needs a cluster .* this broker is alone/)
      assert.match(nth(order.err, 0), /--event-dedupe \(8 d\) must not be longer than --event-age/)
      assert.deepStrictEqual([other.code, cluster.code, order.code], [1, 1, 2])
    })
  )

  it.live(
    "warns of ages that end before an endpoint's retries, and bounds events by refusing more",
    () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.gen(function* () {
          yield* endpoint({ retry: quickRetry({ window: "2 days" }) })
          const ages = (age: string) => ["--history-age", age, "--dead-age", age]
          const short = yield* run("init", "--event-age", "1d", ...ages("1h"), ...flags)
          assert.strictEqual(short.code, 0)
          const said = short.err.join("\n")
          assert.match(
            said,
            /events are kept for 1 d, and acme\/hook is tried for up to 2 d: .*--event-age/
          )
          assert.match(said, /the history is kept for 1 h, and acme\/hook is tried .*--history-age/)
          const long = yield* run("init", "--event-age", "3d", ...ages("3d"), ...flags)
          assert.deepStrictEqual(long.err, [])

          const order = yield* run("init", "--dead-age", "4d", ...flags)
          assert.match(
            nth(order.err, 0),
            /--dead-age \(4 d\) must not be longer than --history-age/
          )

          const bound = yield* run("init", "--event-bytes", "16MiB", ...flags)
          assert.strictEqual(bound.code, 0)
          for (let count = 0; count < 18; count++) yield* publish("large", new Uint8Array(900_000))
          const full = yield* Effect.flip(publish("large", new Uint8Array(900_000)))
          assert.match(full.message, /maximum bytes exceeded/)
          const { ask, jsm, names } = yield* natsClients
          const { state } = yield* ask("look", () => jsm.streams.info(names.events))
          assert.deepStrictEqual([state.first_seq, state.messages], [1, 18])

          const body = "x".repeat(100_000)
          const rest = Effect.forever(publish("small", body))
          assert.match((yield* Effect.flip(rest)).message, /maximum bytes exceeded/)
          const told = yield* run("publish", "acme", "large", body, "--id", "acme.7", ...flags)
          assert.match(
            nth(told.err, 0),
            /EVENTS does not store the event \(maximum bytes exceeded\): .* --id acme\.7 .* `petrel status` says when$/
          )
        })
      )
    }
  )

  it.live(
    "refuses a size for dead letters that is too small for anything, or for what is there",
    () => {
      const { flags, run: installed } = place()
      return installed(
        Effect.gen(function* () {
          const { ask, js, names } = yield* natsClients
          const tiny = yield* run("init", "--dead-bytes", "10", ...flags)
          assert.match(nth(tiny.err, 0), /--dead-bytes "10" must be at least 16 MiB/)
          const letter = new Uint8Array(1_000_000)
          for (let count = 0; count < 17; count++)
            yield* ask("publish", () => js.publish(names.subjects.dead("acme", "hook"), letter))
          const less = yield* run("init", "--dead-bytes", "16MiB", ...flags)
          assert.strictEqual(
            nth(less.err, 0),
            `petrel: --dead-bytes 16 MiB is less than the 16.2 MiB that ${names.dead} holds`
          )
          assert.deepStrictEqual([tiny.code, less.code], [2, 1])
        })
      )
    }
  )
})

/** The bounds of events, history and dead letters, in MiB. */
const boundsOf = Effect.gen(function* () {
  const { ask, jsm, names } = yield* natsClients
  const infos = yield* ask("look", () =>
    Promise.all([names.events, names.history, names.dead].map((name) => jsm.streams.info(name)))
  )
  return infos.map(({ config }) => config.max_bytes / 1024 ** 2)
})

describe("the space that petrel init gives events", () => {
  const GiB = 1024 ** 3
  const limited = installations({
    config: `accounts { P { jetstream { max_file: ${2 * GiB} }, users: [{ user: p, password: p }] } }
no_auth_user: p`
  })
  const small = installations({ maxStore: GiB })

  it.live("is half of the account's limit, is named, and stays as it is later", () => {
    const { flags, within } = limited()
    return within(
      Effect.gen(function* () {
        const made = yield* run("init", "--partitions", "1", ...flags)
        assert.strictEqual(
          made.out.at(-2),
          "events may take 1 GiB, the history 512 MiB, dead letters 256 MiB and what comes in 128 MiB, of the 2 GiB that the account has left"
        )
        assert.deepStrictEqual(yield* boundsOf, [1024, 512, 256])
        yield* run("init", "--event-bytes", "700MiB", ...flags)
        const again = yield* run("init", ...flags)
        assert.lengthOf(again.out, 1)
        assert.deepStrictEqual(yield* boundsOf, [700, 512, 256])
      })
    )
  })

  it.live("is what a broker of unknown size can reserve, where nothing else was asked for", () => {
    const { flags, prefix, within } = small()
    return within(
      Effect.gen(function* () {
        const asked = ["--partitions", "1", "--event-bytes"]
        const tooMuch = yield* run("init", ...asked, "2GiB", ...flags)
        assert.strictEqual(
          nth(tooMuch.err, 0),
          `petrel: the streams need 3840 MiB more (${prefix}EVENTS 2048 MiB, ${prefix}HISTORY 1024 MiB, ${prefix}DEAD 512 MiB, ${prefix}INTAKE 256 MiB), and the broker has less that is not reserved: reserve less with \`petrel init --event-bytes\`, or raise the account's max_file or the broker's max_file_store`
        )
        const made = yield* run("init", "--partitions", "1", ...flags)
        assert.strictEqual(made.code, 0)
        assert.match(made.out.at(-2) ?? "", /: the broker cannot reserve more$/)
        assert.isTrue(made.out.slice(0, -2).every((line) => line.startsWith("created ")))
        const [events = 0, history = 0, dead = 0] = yield* boundsOf
        assert.deepStrictEqual([events, history, dead], [320, 160, 80])
        const more = yield* run("init", "--event-age", "8d", "--dead-bytes", "900MiB", ...flags)
        assert.include(nth(more.err, 0), "the streams need 820 MiB more")
        assert.deepStrictEqual(yield* boundsOf, [events, history, dead])
      })
    )
  })

  it.live("is not set where an installation is there without a bound", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const again = yield* run("init", ...flags)
        assert.strictEqual(again.code, 0)
        assert.deepStrictEqual(
          (yield* boundsOf).slice(0, 2),
          [-1, -1].map((b) => b / 1024 ** 2)
        )
      })
    )
  })
})

describe("an account with limits besides its size", () => {
  for (const [limit, said] of [
    ["max_streams: 20", /may have 20 streams and has 0, and 30 more are to be made: raise its max/],
    ["max_consumers: 4", /may have 4 consumers, .*: raise its max_consumers to 20 at least/],
    ["max_ack_pending: 1000", /may leave 1000 messages unacknowledged, .*: raise its max_ack/],
    ["max_bytes_required: true", /of Petrel's have none, such as .*: leave out its max_bytes/],
    ["disk_max_stream_bytes: 64MB", /EVENTS is to take 512 MiB: choose less with `petrel init/]
  ] as const) {
    const limited = installations({
      config: `accounts { P { jetstream { max_file: 1GiB, ${limit} }, users: [{ user: p, password: p }] } }
no_auth_user: p`
    })

    it.live(`is refused before anything is made: ${limit}`, () => {
      const { flags, within } = limited()
      return within(
        Effect.gen(function* () {
          const { streamNames } = yield* Broker
          const refused = yield* run("init", "--event-bytes", "512MiB", ...flags)
          assert.match(nth(refused.err, 0), said)
          assert.strictEqual(refused.code, 1)
          assert.deepStrictEqual(yield* streamNames("look"), [])
        })
      )
    })
  }

  const bounded = installations({
    config: `accounts { P { jetstream { max_file: 2GiB, disk_max_stream_bytes: 600MB }, users: [{ user: p, password: p }] } }
no_auth_user: p`
  })

  it.live("is enough where each of its streams may be large enough", () => {
    const { flags, within } = bounded()
    return within(
      Effect.gen(function* () {
        const made = yield* run("init", "--event-bytes", "512MiB", ...flags)
        assert.strictEqual(made.code, 0, made.err.join())
      })
    )
  })
})
