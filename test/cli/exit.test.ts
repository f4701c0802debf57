import { assert, describe, it } from "@effect/vitest"
import { TimeoutError } from "@nats-io/transport-node"
import { Cause, Exit } from "effect"
import { CliError } from "effect/cli"
import { BrokerError } from "../../src/broker/broker-error.ts"
import { exitOf } from "../../src/cli/exit.ts"
import { Refused } from "../../src/cli/refused.ts"
import { OutputClosed } from "../../src/cli/terminal/stdout.ts"
import { Invalid, invalid, notNow } from "../../src/domain/problem.ts"
import { EventNotStored } from "../../src/operations/refusals.ts"

const interrupted = 130

describe("the end of a command", () => {
  it("is 0 and silent where it worked, and where the reader of its results went away", () => {
    assert.deepStrictEqual(exitOf(Exit.void, 0), { code: 0, message: undefined })
    assert.deepStrictEqual(exitOf(Exit.fail(new OutputClosed()), 0), {
      code: 0,
      message: undefined
    })
  })

  it("is one line without a stack for a failure", () => {
    const failure = new Refused({ message: "it is\n  not possible" })
    assert.deepStrictEqual(exitOf(Exit.fail(failure), 0), {
      code: 1,
      message: "it is not possible"
    })
  })

  it("names flags where an operation names fields", () => {
    const messageOf = (error: Error) => exitOf(Exit.fail(error), 0).message
    assert.strictEqual(
      messageOf(
        new Invalid({
          problems: [
            { field: "maxInFlight", message: "0 must be between 1 and 1000" },
            { field: "since", message: "is later than `until`: nothing lies between" }
          ]
        })
      ),
      "--max-in-flight 0 must be between 1 and 1000; --since is later than --until: nothing lies between"
    )
    const again = new EventNotStored({ reason: "unknown", message: "publish it with `id` acme.7" })
    assert.strictEqual(messageOf(again), "publish it with --id acme.7")
  })

  it("is 2 where the input is wrong, and 1 where the same may be asked for again later", () => {
    assert.strictEqual(exitOf(Exit.fail(invalid("since", "is wrong")), 0).code, 2)
    assert.strictEqual(exitOf(Exit.fail(notNow("acme/hook is disabled")), 0).code, 1)
  })

  it("says whose login is wanted where the broker forbids something, as to an outbox's user", () => {
    const cause = new Error('Permissions Violation for Publish to "$JS.API.STREAM.INFO.S"')
    const failure = new BrokerError({ operation: "look at S", cause })
    const { message = "" } = exitOf(Exit.fail(failure), 0)
    assert.match(message, /^look at S: .*"\$JS\.API\.STREAM\.INFO\.S": .*`operator` for people/)
  })

  it("says what to do where the broker did not answer, as while a cluster elects leaders", () => {
    const cause = new TimeoutError()
    const failure = new BrokerError({ operation: "look at stream PETREL_EVENTS", cause })
    assert.deepStrictEqual(exitOf(Exit.fail(failure), 0), {
      code: 1,
      message:
        "the broker does not answer (look at stream PETREL_EVENTS: timeout): a cluster that has lost a leader elects another within some 10 s, if more than half of its servers run; then run this again"
    })
  })

  it("shows a defect with its stack and asks for a report", () => {
    const { code, message = "" } = exitOf(Exit.die(new Error("boom")), 0)
    assert.strictEqual(code, 1)
    assert.match(message, /please report it/)
    assert.match(message, /Error: boom\n\s+at .*exit\.test\.ts/)
  })

  it("says what to allow where no more files can be opened, which is no defect", () => {
    const refused = Object.assign(new Error("EMFILE: too many open files, open '/x'"), {
      code: "EMFILE"
    })
    assert.deepStrictEqual(exitOf(Exit.die(refused), 0), {
      code: 1,
      message:
        "no more files can be opened (EMFILE: too many open files, open '/x'): allow more with `ulimit -n`, or systemd's LimitNOFILE"
    })
  })

  it("has the signal's code where a signal interrupted it", () => {
    const exit = Exit.failCause(Cause.interrupt())
    assert.deepStrictEqual(exitOf(exit, interrupted), { code: interrupted, message: undefined })
  })

  it("is 2 after a wrong invocation, 0 after the help of the program or of a group", () => {
    const help = (commandPath: Array<string>, errors: Array<CliError.NonShowHelpErrors>) =>
      exitOf(Exit.fail(new CliError.ShowHelp({ commandPath, errors })), 0).code
    assert.strictEqual(help(["petrel"], []), 0)
    assert.strictEqual(help(["petrel", "endpoint"], []), 0)
    assert.strictEqual(help(["petrel"], [new CliError.MissingOption({ option: "x" })]), 2)
  })
})
