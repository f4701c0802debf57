import { assert, describe, it } from "@effect/vitest"
import { flagProblems } from "../../../src/cli/flags/flag-problems.ts"

describe("problems of an operation's input, on the command line", () => {
  it("are said of the flags", () => {
    assert.deepStrictEqual(
      flagProblems([
        { field: "maxInFlight", message: "0 must be between 1 and 1000" },
        { field: "types.1", message: '"a..b" must be event types' },
        { field: "circuit.failures", message: "0 must be between 1 and 10000" },
        { field: "secret", message: "does not fit: it is too short" },
        { field: "circuit", message: "must be ordered" },
        { field: "signatureHeader", message: "goes with `sign` stripe only" },
        { field: "headers.x-none", message: "names a header that is not set" },
        { field: "headerNames.type", message: '"a" is also the name of `headerNames.id`' },
        { field: "retryFor", message: '"a.>" and "a.*" win equally' },
        { field: "retryFor.a.>", message: "names event types without a policy" },
        { field: "", message: "run `petrel init` first" }
      ]),
      [
        "--max-in-flight 0 must be between 1 and 1000",
        '--types "a..b" must be event types',
        "--circuit: failures 0 must be between 1 and 10000; must be ordered",
        "the secret does not fit: it is too short",
        "--signature-header goes with --sign stripe only",
        '--header "x-none" names a header that is not set',
        '--type-header "a" is also the name of --id-header',
        '--retry-for "a.>" and "a.*" win equally',
        '--retry-for "a.>" names event types without a policy',
        "run `petrel init` first"
      ]
    )
  })

  it("are said of the flags of a command, of a repeated one where a part of it is named", () => {
    const names = { type: "TYPE", retryFor: "--no-retry-for" }
    const problems = ["type", "retryFor", "retryFor.a"].map((field) => ({ field, message: "is" }))
    assert.deepStrictEqual(flagProblems(problems, names), [
      ...["TYPE is", "--retry-for is", '--no-retry-for "a" is']
    ])
  })
})
