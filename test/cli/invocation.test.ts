import { spawnSync } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { presetNames } from "../../src/policy/presets.ts"
import { nth } from "../kit/engine.ts"
import { program } from "./command-line.ts"
import { run } from "./in-process.ts"
import { runProcess } from "./running.ts"

describe("petrel", () => {
  it.live("says its version, and lists its commands in its help", () =>
    Effect.gen(function* () {
      const [version, help] = yield* Effect.all([runProcess("--version"), run("--help")], {
        concurrency: 2
      })
      assert.match(nth(version.out, 0), /^petrel \d+\.\d+\.\d+$/)
      const text = help.out.join("\n")
      for (const name of ["dev", "init", "worker", "endpoint", "publish", "presets", "history"])
        assert.match(text, new RegExp(`^ +${name} `, "m"))
      assert.deepStrictEqual([version.code, help.code], [0, 0])
    })
  )

  it("runs as it is written, too, without having been put together", () => {
    const written = join(import.meta.dirname, "../../src/cli/main.ts")
    const { status, stderr, stdout } = spawnSync(process.execPath, [written, "presets", "--json"], {
      encoding: "utf8"
    })
    assert.deepStrictEqual([status, stderr], [0, ""])
    assert.strictEqual(stdout.trim().split("\n").length, presetNames.length)
  })

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
          ["presets", "--nats", "user:s3/cr,et"],
          'petrel: --nats "…" must be an address such as nats://127.0.0.1:4222; see `petrel presets --help`'
        ],
        [
          ["presets", "--nats", "http://user:s3/cr,et@127.0.0.1"],
          'petrel: --nats "http://127.0.0.1" must be an address such as nats://127.0.0.1:4222; see `petrel presets --help`'
        ],
        [
          ["status", "--creds", "/nowhere", "--nkey", "/nowhere"],
          "petrel: --creds (NATS_CREDS) and --nkey (NATS_NKEY) cannot be combined"
        ],
        [
          ["--nkey", "/nowhere", "status"],
          "petrel: --nkey /nowhere cannot be read: there is no such file"
        ],
        [
          ["xyzzyxy"],
          'petrel: there is no command "xyzzyxy", only dev, init, status, worker, workers, console, ingest, openapi, backup, restore, repartition, upgrade, endpoint, source, reconcile, quarantine, tenant, token, portal, login, publish, receive, inbox, outbox, history, dead, replay, audit, stats, delivery, events, attempts, projection, rebuild, alerts, presets; see `petrel --help`'
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
          `petrel: ${program} cannot be used for data (it is not a directory): choose another directory with --data`
        ],
        [
          ["dev", "--store", "much"],
          'petrel: --store "much" must be a size such as 512MiB, 1GiB or a number of bytes; see `petrel dev --help`'
        ],
        [
          ["dev", "--store", "1MiB"],
          'petrel: --store "1MiB" must be at least 64 MiB; see `petrel dev --help`'
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
          ["worker", "--answers", "acme=all"],
          'petrel: --answers "acme=all" must be none, status, headers or body, or a tenant\'s such as acme=status'
        ],
        [
          ["worker", "--allow-network", "10.0.0.1/8"],
          'petrel: --allow-network "10.0.0.1/8" is not a network: the address has bits set beyond the prefix; did you mean 10.0.0.0/8?'
        ],
        [
          ["worker", "--allow-network", "_=10.0.0.0/8", "--allow-port", "acme=70000"],
          'petrel: --allow-network "_=10.0.0.0/8" must name a tenant before the =: 1 to 64 letters, digits, - or _ (and not a lone _); --allow-port "70000" must be a port from 1 to 65535, or any'
        ],
        [
          ["worker", "--receiver-ca", import.meta.filename],
          `petrel: --receiver-ca "${import.meta.filename}" must be a file with certificates in PEM format`
        ]
      ]
      // Each way to find a problem once in a process, too: of the invocation, and of the command.
      const startedAlone = new Set(["publsh", "publish"])
      const ends = yield* Effect.forEach(
        wrong,
        ([args]) => (startedAlone.has(nth(args, 0)) ? runProcess(...args) : run(...args)),
        { concurrency: 2 }
      )
      for (const [index, { code, err, out }] of ends.entries()) {
        const [, said] = nth(wrong, index)
        assert.deepStrictEqual(err, [said])
        assert.deepStrictEqual(out, [])
        assert.strictEqual(
          code,
          /NATS_CREDS|cannot be (read|used for data)/.test(said) ? 1 : 2,
          said
        )
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
      const { code, err } = yield* runProcess(
        "endpoint",
        "list",
        "--nats",
        "nats://me:hush@127.0.0.1:1"
      )
      assert.strictEqual(code, 1)
      assert.strictEqual(err.length, 2)
      assert.include(nth(err, 0), "see the login in --nats while this runs: use NATS_URL, --creds")
      assert.match(
        nth(err, 1),
        /^petrel: no NATS server answers at nats:\/\/127\.0\.0\.1:1 .*petrel dev/
      )
      assert.notInclude(err.join(), "hush")
    })
  )
})
