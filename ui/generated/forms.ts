/* Made from the settings and the operations by `npm run reference`. */

import type { Field } from "../fields.ts"

export const endpointFields: ReadonlyArray<Field> = [
  {
    "name": "url",
    "text": "Where requests go: http or https.",
    "removal": "never",
    "initial": "",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "types",
    "text": "Types of the events that the endpoint gets, as NATS wildcards: `invoice.paid`, `invoice.*`, `>`.",
    "usual": "all",
    "removal": "never",
    "initial": [
      ">"
    ],
    "kind": {
      "is": "list"
    }
  },
  {
    "name": "sign",
    "text": "How requests are signed: Standard Webhooks, Stripe's or GitHub's way, or not at all.",
    "usual": "standard",
    "removal": "never",
    "initial": "standard",
    "kind": {
      "is": "choice",
      "options": [
        "standard",
        "standard-ed25519",
        "stripe",
        "github",
        "none"
      ]
    }
  },
  {
    "name": "signatureHeader",
    "text": "Name of the signature header, if `sign` is stripe.",
    "usual": "petrel-signature",
    "removal": "never",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "headerNames",
    "text": "Other names for the headers id, type and timestamp.",
    "removal": "null by part",
    "kind": {
      "is": "parts",
      "parts": [
        {
          "name": "id",
          "text": "Of the event's id. (Default: webhook-id)",
          "kind": {
            "is": "text"
          }
        },
        {
          "name": "type",
          "text": "Of the event's type. (Default: webhook-event-type)",
          "kind": {
            "is": "text"
          }
        },
        {
          "name": "timestamp",
          "text": "Of the attempt's time, s since the epoch. (Default: webhook-timestamp)",
          "kind": {
            "is": "text"
          }
        }
      ]
    }
  },
  {
    "name": "retry",
    "text": "The name of a preset, or a policy of its own.",
    "usual": "default",
    "removal": "never",
    "initial": "default",
    "kind": {
      "is": "any"
    }
  },
  {
    "name": "retryFor",
    "text": "Policies of some event types, by type filter.",
    "usual": "`retry` is the policy of all types",
    "removal": "null by name",
    "kind": {
      "is": "entries"
    }
  },
  {
    "name": "maxInFlight",
    "text": "Concurrent requests, 1 to 1,000.",
    "usual": "10",
    "removal": "never",
    "initial": 10,
    "kind": {
      "is": "number",
      "least": 1,
      "most": 1000
    }
  },
  {
    "name": "adapt",
    "text": "Fewer concurrent requests while the receiver answers 429 or 503, times out or slows down.",
    "usual": "false",
    "removal": "empty",
    "kind": {
      "is": "switch"
    }
  },
  {
    "name": "format",
    "text": "`slack`: bodies as incoming webhooks of chat tools take them. Only for an endpoint that gets nothing but alerts.",
    "usual": "the event's bytes",
    "kind": {
      "is": "choice",
      "options": [
        "slack"
      ]
    }
  },
  {
    "name": "rate",
    "text": "Requests per second, and the burst after a pause: as numbers, or in words such as `20/s burst 40`.",
    "usual": "no limit",
    "kind": {
      "is": "any"
    }
  },
  {
    "name": "circuit",
    "text": "After which failures the endpoint gets only probes, and when it is given up.",
    "usual": "{}, the defaults",
    "removal": "empty",
    "kind": {
      "is": "parts",
      "parts": [
        {
          "name": "failures",
          "text": "Transient failures in a row that open it.",
          "usual": "5",
          "kind": {
            "is": "number",
            "least": 1,
            "most": 10000
          }
        },
        {
          "name": "rate",
          "text": "The share of failures that opens it, or `none`.",
          "usual": "{\"percent\":50,\"of\":20,\"over\":\"1 minute\"}",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "coolDown",
          "text": "",
          "usual": "30 seconds",
          "kind": {
            "is": "text",
            "example": "30 seconds"
          }
        },
        {
          "name": "maxCoolDown",
          "text": "",
          "usual": "15 minutes",
          "kind": {
            "is": "text",
            "example": "30 seconds"
          }
        },
        {
          "name": "successes",
          "text": "Probes in a row that have to succeed to close it.",
          "usual": "2",
          "kind": {
            "is": "number",
            "least": 1,
            "most": 100
          }
        },
        {
          "name": "onOpen",
          "text": "What happens to deliveries while it is open.",
          "usual": "backlog",
          "kind": {
            "is": "choice",
            "options": [
              "backlog",
              "dead-letter"
            ]
          }
        },
        {
          "name": "giveUpAfter",
          "text": "",
          "usual": "5 days",
          "kind": {
            "is": "text",
            "example": "30 seconds"
          }
        },
        {
          "name": "permanentFailures",
          "text": "Permanent failures in a row at which it is given up.",
          "usual": "100",
          "kind": {
            "is": "number",
            "least": 1,
            "most": 1000000
          }
        },
        {
          "name": "onGiveUp",
          "text": "What happens to an endpoint that is given up.",
          "usual": "disable",
          "kind": {
            "is": "choice",
            "options": [
              "disable",
              "suspend"
            ]
          }
        },
        {
          "name": "onGone",
          "text": "What happens to an endpoint that answers 410.",
          "usual": "disable",
          "kind": {
            "is": "choice",
            "options": [
              "disable",
              "suspend"
            ]
          }
        }
      ]
    }
  },
  {
    "name": "timeout",
    "text": "Time-out of an attempt, including redirects, such as \"30 seconds\".",
    "usual": "the policy's, else 30 seconds",
    "kind": {
      "is": "text",
      "example": "30 seconds"
    }
  },
  {
    "name": "connectTimeout",
    "text": "Time limit of name look-up, TCP and TLS, such as \"5 seconds\".",
    "usual": "the policy's, else 10 seconds",
    "kind": {
      "is": "text",
      "example": "30 seconds"
    }
  },
  {
    "name": "redirects",
    "text": "How many redirects are followed, 0 to 10. With 0, a 3xx is a permanent failure.",
    "usual": "0",
    "removal": "never",
    "initial": 0,
    "kind": {
      "is": "number",
      "least": 0,
      "most": 10
    }
  },
  {
    "name": "redirectsTo",
    "text": "Other origins that redirects may lead to, such as https://eu.example.com.",
    "usual": "none",
    "kind": {
      "is": "list"
    }
  },
  {
    "name": "headers",
    "text": "Headers of every request to the endpoint, 20 at most. Their values are not shown again.",
    "removal": "null by name",
    "isSecret": true,
    "kind": {
      "is": "entries"
    }
  },
  {
    "name": "forwardHeaders",
    "text": "Headers of the publisher that the endpoint gets, by name: true adds one, null removes one.",
    "usual": "none",
    "removal": "null by name",
    "kind": {
      "is": "names"
    }
  },
  {
    "name": "contact",
    "text": "Whom to notify of problems. Alerts about the endpoint carry it.",
    "usual": "nobody",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "description",
    "text": "What the endpoint is for: 1 to 500 characters on one line.",
    "usual": "none",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "metadata",
    "text": "Entries for your own programs, such as a customer's number: up to 20, with names of up to 64 bytes and values of up to 512. The history keeps them for good: store no credentials and nothing that must be erased.",
    "usual": "{}",
    "removal": "null by name",
    "kind": {
      "is": "entries"
    }
  },
  {
    "name": "alerts",
    "text": "When alerts about the endpoint are raised.",
    "usual": "{}, the tenant's thresholds",
    "removal": "empty",
    "kind": {
      "is": "parts",
      "parts": [
        {
          "name": "successWarnPercent",
          "text": "A warning if fewer deliveries than this succeed, percent.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "successCriticalPercent",
          "text": "A critical alert if fewer deliveries than this succeed, percent.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "retriesPercent",
          "text": "A warning if the first attempt of more deliveries than this must be retried, percent.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "permanentPercent",
          "text": "A warning if more final answers than this are permanent failures, percent.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "attemptsPerDelivery",
          "text": "A warning if successful deliveries take more attempts than this on average.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "medianTime",
          "text": "A warning if half of the deliveries take longer than this from the event to success.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "p99Time",
          "text": "A warning if 1 of 100 deliveries takes longer than this from the event to success.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "deadLetters",
          "text": "A warning at this many dead letters of one endpoint within the window.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "tenantDeadLetters",
          "text": "A warning at this many dead letters of all endpoints of a tenant within the window.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "sourcesRefusing",
          "text": "A warning at this many sources of a tenant that refuse every request.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "quarantined",
          "text": "A warning at this many requests of a tenant in quarantine.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "providerLost",
          "text": "A warning at this many events of a tenant's sources that had not come in when these were last reconciled.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "failuresInRow",
          "text": "A warning at this many failed attempts in a row while the circuit is closed.",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "circuitOpened",
          "text": "Whether an open circuit is an alert.",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "endpointDisabled",
          "text": "Whether a disabled endpoint is an alert.",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "endpointSuspended",
          "text": "Whether a suspended endpoint is an alert.",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "statusInARow",
          "text": "Whether it is an alert if an endpoint answers with one status as many times in a row as `alert` of its retry policy says for that status.",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "window",
          "text": "The time over which all values are counted.",
          "kind": {
            "is": "text",
            "example": "30 seconds"
          }
        },
        {
          "name": "samples",
          "text": "With fewer deliveries than this, shares and times are not judged.",
          "kind": {
            "is": "number",
            "least": 1,
            "most": 1000000
          }
        }
      ],
      "mayBeOff": true
    }
  },
  {
    "name": "operational",
    "text": "The endpoint also gets its tenant's alerts, as events.",
    "usual": "false",
    "removal": "never",
    "kind": {
      "is": "switch"
    }
  },
  {
    "name": "secret",
    "text": "The signing secret. It replaces all former ones.",
    "usual": "a new one, which is shown",
    "removal": "never",
    "isSecret": true,
    "kind": {
      "is": "text"
    }
  }
]

export const tenantSettingFields: ReadonlyArray<Field> = [
  {
    "name": "hostCap",
    "text": "Concurrent requests of all of the tenant's endpoints whose URLs have the same host name, 1 to 100,000.",
    "usual": "no limit",
    "kind": {
      "is": "number",
      "least": 1,
      "most": 100000
    }
  },
  {
    "name": "maxTimeout",
    "text": "Longest time-out of an attempt that endpoints of the tenant may have, 1 second to 24 hours, such as \"15 minutes\". A longer one that is stored is cut to it.",
    "usual": "the system's, else 5 minutes",
    "kind": {
      "is": "text",
      "example": "30 seconds"
    }
  },
  {
    "name": "maxEndpoints",
    "text": "How many endpoints a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own.",
    "usual": "1,000",
    "kind": {
      "is": "number",
      "least": 0,
      "most": 1000000
    }
  },
  {
    "name": "maxTokens",
    "text": "How many tokens of the HTTP API, and as many links and sessions of browsers, a tenant may have, 0 to 1,000,000. Those of the system hold for tenants without a number of their own.",
    "usual": "1,000",
    "kind": {
      "is": "number",
      "least": 0,
      "most": 1000000
    }
  },
  {
    "name": "forwardHeaders",
    "text": "Headers of the publisher that all of the tenant's endpoints get, besides those that an endpoint names, by name: true adds one, null removes one.",
    "usual": "none",
    "removal": "null by name",
    "kind": {
      "is": "names"
    }
  }
]

export const sourceFields: ReadonlyArray<Field> = [
  {
    "name": "provider",
    "text": "Who sends: stripe, github, standard and others.",
    "kind": {
      "is": "choice",
      "options": [
        "petrel",
        "standard-webhooks",
        "stripe",
        "github",
        "gitlab",
        "shopify",
        "slack",
        "twilio",
        "sendgrid",
        "paddle",
        "paypal",
        "square",
        "discord",
        "linear",
        "hubspot",
        "zoom",
        "mailgun",
        "meta",
        "x",
        "hmac"
      ]
    }
  },
  {
    "name": "secrets",
    "text": "What the provider signs with, or its public keys. Needed, but for paypal.",
    "kind": {
      "is": "list"
    },
    "isSecret": true
  },
  {
    "name": "tolerance",
    "text": "How far the signed time may be off; the default depends on the provider.",
    "kind": {
      "is": "text",
      "example": "30 seconds"
    }
  },
  {
    "name": "publicUrl",
    "text": "The URL that the provider was given, without its query, which it signs. Only for twilio, square, hubspot, hmac.",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "webhookId",
    "text": "What the provider calls the webhook, such as `repos/acme/shop/hooks/42` in GitHub's API.",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "verifyToken",
    "text": "What the provider repeats when the webhook is set up. Only for meta.",
    "kind": {
      "is": "text"
    },
    "isSecret": true
  },
  {
    "name": "scheme",
    "text": "How a sender of the provider `hmac` signs.",
    "kind": {
      "is": "entries"
    }
  },
  {
    "name": "rate",
    "text": "Requests that each gateway takes; others are refused for now, and the provider sends them again.",
    "kind": {
      "is": "any"
    }
  },
  {
    "name": "apiKey",
    "text": "Credentials for the provider's API, which is asked for events that never came in. Only for petrel, standard-webhooks, stripe, github, gitlab, shopify, paddle, paypal, square, mailgun.",
    "kind": {
      "is": "text"
    },
    "isSecret": true
  },
  {
    "name": "apiUrl",
    "text": "Where the provider's API is, if it is not the provider's own.",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "reconcile",
    "text": "How often gateways ask the provider's API for events that never came in, and fetch them.",
    "kind": {
      "is": "text",
      "example": "30 seconds"
    }
  },
  {
    "name": "reconcileTypes",
    "text": "Patterns of the provider's types that are compared, such as `invoice.*`.",
    "kind": {
      "is": "list"
    }
  },
  {
    "name": "alertAbove",
    "text": "How many events may be missing before `provider-lost` is recorded in the history.",
    "kind": {
      "is": "number",
      "least": 0,
      "most": 1000000
    }
  }
]

export const tenantThresholdFields: ReadonlyArray<Field> = [
  {
    "name": "alerts",
    "text": "Thresholds of the tenant, `off`, or null.",
    "kind": {
      "is": "parts",
      "parts": [
        {
          "name": "successWarnPercent",
          "text": "A warning if fewer deliveries than this succeed, percent.",
          "usual": "99",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "successCriticalPercent",
          "text": "A critical alert if fewer deliveries than this succeed, percent.",
          "usual": "95",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "retriesPercent",
          "text": "A warning if the first attempt of more deliveries than this must be retried, percent.",
          "usual": "10",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "permanentPercent",
          "text": "A warning if more final answers than this are permanent failures, percent.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "attemptsPerDelivery",
          "text": "A warning if successful deliveries take more attempts than this on average.",
          "usual": "2",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "medianTime",
          "text": "A warning if half of the deliveries take longer than this from the event to success.",
          "usual": "5 seconds",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "p99Time",
          "text": "A warning if 1 of 100 deliveries takes longer than this from the event to success.",
          "usual": "5 minutes",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "deadLetters",
          "text": "A warning at this many dead letters of one endpoint within the window.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "tenantDeadLetters",
          "text": "A warning at this many dead letters of all endpoints of a tenant within the window.",
          "usual": "100",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "sourcesRefusing",
          "text": "A warning at this many sources of a tenant that refuse every request.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "quarantined",
          "text": "A warning at this many requests of a tenant in quarantine.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "providerLost",
          "text": "A warning at this many events of a tenant's sources that had not come in when these were last reconciled.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "failuresInRow",
          "text": "A warning at this many failed attempts in a row while the circuit is closed.",
          "usual": "20",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "circuitOpened",
          "text": "Whether an open circuit is an alert.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "endpointDisabled",
          "text": "Whether a disabled endpoint is an alert.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "endpointSuspended",
          "text": "Whether a suspended endpoint is an alert.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "statusInARow",
          "text": "Whether it is an alert if an endpoint answers with one status as many times in a row as `alert` of its retry policy says for that status.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "window",
          "text": "The time over which all values are counted.",
          "usual": "10 minutes",
          "kind": {
            "is": "text",
            "example": "30 seconds"
          }
        },
        {
          "name": "samples",
          "text": "With fewer deliveries than this, shares and times are not judged.",
          "usual": "20",
          "kind": {
            "is": "number",
            "least": 1,
            "most": 1000000
          }
        },
        {
          "name": "contact",
          "text": "Who is named in alerts about endpoints that have no contact of their own.",
          "kind": {
            "is": "text"
          }
        }
      ],
      "mayBeOff": true
    }
  }
]

export const systemThresholdFields: ReadonlyArray<Field> = [
  {
    "name": "alerts",
    "text": "Thresholds of the system, or null.",
    "kind": {
      "is": "parts",
      "parts": [
        {
          "name": "successWarnPercent",
          "text": "A warning if fewer deliveries than this succeed, percent.",
          "usual": "99",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "successCriticalPercent",
          "text": "A critical alert if fewer deliveries than this succeed, percent.",
          "usual": "95",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "retriesPercent",
          "text": "A warning if the first attempt of more deliveries than this must be retried, percent.",
          "usual": "10",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "permanentPercent",
          "text": "A warning if more final answers than this are permanent failures, percent.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "attemptsPerDelivery",
          "text": "A warning if successful deliveries take more attempts than this on average.",
          "usual": "2",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "medianTime",
          "text": "A warning if half of the deliveries take longer than this from the event to success.",
          "usual": "5 seconds",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "p99Time",
          "text": "A warning if 1 of 100 deliveries takes longer than this from the event to success.",
          "usual": "5 minutes",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "deadLetters",
          "text": "A warning at this many dead letters of one endpoint within the window.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "tenantDeadLetters",
          "text": "A warning at this many dead letters of all endpoints of a tenant within the window.",
          "usual": "100",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "sourcesRefusing",
          "text": "A warning at this many sources of a tenant that refuse every request.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "quarantined",
          "text": "A warning at this many requests of a tenant in quarantine.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "providerLost",
          "text": "A warning at this many events of a tenant's sources that had not come in when these were last reconciled.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "failuresInRow",
          "text": "A warning at this many failed attempts in a row while the circuit is closed.",
          "usual": "20",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "circuitOpened",
          "text": "Whether an open circuit is an alert.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "endpointDisabled",
          "text": "Whether a disabled endpoint is an alert.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "endpointSuspended",
          "text": "Whether a suspended endpoint is an alert.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "statusInARow",
          "text": "Whether it is an alert if an endpoint answers with one status as many times in a row as `alert` of its retry policy says for that status.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "window",
          "text": "The time over which all values are counted.",
          "usual": "10 minutes",
          "kind": {
            "is": "text",
            "example": "30 seconds"
          }
        },
        {
          "name": "samples",
          "text": "With fewer deliveries than this, shares and times are not judged.",
          "usual": "20",
          "kind": {
            "is": "number",
            "least": 1,
            "most": 1000000
          }
        },
        {
          "name": "unroutedTime",
          "text": "A critical alert if an event waits longer than this to be routed.",
          "usual": "5 minutes",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "waitingGrowth",
          "text": "A warning if this many more deliveries wait than at the start of the window.",
          "usual": "1000",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "circuitsOpen",
          "text": "A critical alert at this many circuits that are open at the same time.",
          "usual": "10",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "systemDeadLetters",
          "text": "A critical alert at this many dead letters of all tenants, each within its window.",
          "usual": "1000",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "outboxTime",
          "text": "A critical alert if rows of an outbox wait longer than this to be published.",
          "usual": "1 minute",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "outboxSetAside",
          "text": "A warning at this many rows of all outboxes that are set aside.",
          "usual": "1",
          "kind": {
            "is": "any"
          }
        },
        {
          "name": "deliveriesMissing",
          "text": "Whether it is an alert that an audit finds something missing.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "diskFailed",
          "text": "Whether it is an alert that the broker stores nothing more in a stream.",
          "usual": "on",
          "kind": {
            "is": "choice",
            "options": [
              "on",
              "off"
            ]
          }
        },
        {
          "name": "systemAlertsTo",
          "text": "The tenant whose operational endpoints get the alerts about the system. (Default: none)",
          "kind": {
            "is": "text"
          }
        }
      ]
    }
  }
]

export const tokenFields: ReadonlyArray<Field> = [
  {
    "name": "scopes",
    "text": "What it may do: endpoints:read, endpoints:write, secrets:read, events:publish, deliveries:read, payloads:read, dead:read, dead:write, replay:write, tokens:write, operator.",
    "kind": {
      "is": "choices",
      "options": [
        "endpoints:read",
        "endpoints:write",
        "secrets:read",
        "events:publish",
        "deliveries:read",
        "payloads:read",
        "dead:read",
        "dead:write",
        "replay:write",
        "tokens:write",
        "operator"
      ]
    }
  },
  {
    "name": "name",
    "text": "What it is for.",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "rate",
    "text": "Requests per second.",
    "usual": "as the token it is made with, else 1,000",
    "kind": {
      "is": "number",
      "least": 1,
      "most": 1000000
    }
  },
  {
    "name": "expiresAt",
    "text": "When it expires.",
    "usual": "with the token it is made with, else never",
    "kind": {
      "is": "time"
    }
  }
]

export const portalLinkFields: ReadonlyArray<Field> = [
  {
    "name": "endpoint",
    "text": "The endpoint that it is about.",
    "usual": "all of the tenant's",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "lastsMs",
    "text": "How long link and session last, ms, a minute to a day.",
    "usual": "an hour",
    "kind": {
      "is": "number",
      "least": 60000,
      "most": 86400000
    }
  },
  {
    "name": "name",
    "text": "A name for people, such as who gets the link.",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "readOnly",
    "text": "Its pages show, and change nothing.",
    "usual": "false",
    "kind": {
      "is": "switch"
    }
  },
  {
    "name": "brand",
    "text": "What its pages are headed with: a name, a colour such as #0b63ce, a logo as a data URL.",
    "kind": {
      "is": "parts",
      "parts": [
        {
          "name": "name",
          "text": "What stands in place of Petrel's name.",
          "kind": {
            "is": "text"
          }
        },
        {
          "name": "colour",
          "text": "Of links and buttons: `#0b63ce`.",
          "kind": {
            "is": "text"
          }
        },
        {
          "name": "logo",
          "text": "A data URL of an image.",
          "kind": {
            "is": "text"
          }
        }
      ]
    }
  }
]

export const redeliveryFields: ReadonlyArray<Field> = [
  {
    "name": "reason",
    "text": "Only those that ended for this reason.",
    "kind": {
      "is": "choice",
      "options": [
        "permanent",
        "attempts",
        "status-limit",
        "deadline",
        "endpoint-disabled",
        "endpoint-removed",
        "circuit-open",
        "backlog-full",
        "defect",
        "event-gone",
        "gone"
      ]
    }
  }
]

export const replayFields: ReadonlyArray<Field> = [
  {
    "name": "event",
    "text": "Only the event of this id.",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "since",
    "text": "Events stored then or later.",
    "kind": {
      "is": "time"
    }
  },
  {
    "name": "until",
    "text": "Events stored then or earlier.",
    "usual": "now",
    "kind": {
      "is": "time"
    }
  },
  {
    "name": "skipped",
    "text": "Only events that were skipped because it was disabled.",
    "kind": {
      "is": "switch"
    }
  },
  {
    "name": "onlyMissing",
    "text": "Leave out events that it has taken or that are on their way there.",
    "kind": {
      "is": "switch"
    }
  },
  {
    "name": "id",
    "text": "A name: the same name continues it.",
    "usual": "made from the other fields",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "types",
    "text": "NATS wildcards, of which one must match.",
    "usual": "what the endpoint wants",
    "kind": {
      "is": "list"
    }
  }
]

export const recoveryFields: ReadonlyArray<Field> = [
  {
    "name": "since",
    "text": "Failed then or later.",
    "kind": {
      "is": "time"
    }
  },
  {
    "name": "until",
    "text": "Failed then or earlier.",
    "usual": "now",
    "kind": {
      "is": "time"
    }
  }
]

export const retryFields: ReadonlyArray<Field> = [
  {
    "name": "types",
    "text": "NATS wildcards, of which one must match the event's type.",
    "kind": {
      "is": "list"
    }
  },
  {
    "name": "status",
    "text": "Only those with this last status, or its class: 503, 5xx.",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "error",
    "text": "Only those whose last attempt failed with an error of this class.",
    "kind": {
      "is": "choice",
      "options": [
        "timeout",
        "connect-timeout",
        "refused",
        "reset",
        "unreachable",
        "connection",
        "dns",
        "certificate",
        "handshake",
        "address",
        "protocol",
        "redirect",
        "interrupted"
      ]
    }
  },
  {
    "name": "since",
    "text": "Attempted last then or later.",
    "kind": {
      "is": "time"
    }
  },
  {
    "name": "until",
    "text": "Attempted last then or earlier.",
    "kind": {
      "is": "time"
    }
  },
  {
    "name": "ignoreRetryAfter",
    "text": "Do not wait for the end of the receiver's Retry-After.",
    "usual": "false",
    "kind": {
      "is": "switch"
    }
  }
]

export const auditFields: ReadonlyArray<Field> = [
  {
    "name": "tenant",
    "text": "Only those of this tenant.",
    "kind": {
      "is": "text"
    }
  },
  {
    "name": "since",
    "text": "Stored then or later.",
    "kind": {
      "is": "time"
    }
  },
  {
    "name": "until",
    "text": "Stored then or earlier.",
    "kind": {
      "is": "time"
    }
  }
]
