interface Coded {
  readonly status: number | readonly number[];
  /** Completes "the error means that ...": what happened, and what the caller can do. */
  readonly cause: string;
}

const PAGE_STATUSES = [500, 502] as const;

/**
 * All values of `code` in error bodies, for programs that distinguish causes of one status. A released code
 * keeps its meaning. `npm run docs:codes` lists them in docs/api.md.
 */
export const ERROR_CODES = {
  ADMIN_REQUIRED: { status: 403, cause: 'only an administrator may do this' },
  AGENT_LIMIT_REACHED: {
    status: [402, 429],
    cause: 'your plan allows no further agent: remove one or upgrade; 429 from `provision`',
  },
  AGENT_MOVED: { status: 409, cause: 'the agent has moved to another host: retry' },
  AGENT_NOT_RUNNING: { status: 409, cause: 'the agent does not run: start it first' },
  ANSWER_NOT_KEPT: {
    status: 409,
    cause: 'the request was carried out, and its answer is no longer kept: read its result',
  },
  AUTHORIZATION_REQUIRED: {
    status: 401,
    cause: 'the wallet must sign `typedData` to open a payment session',
  },
  AUTOMATED_REQUEST: { status: 403, cause: 'the request looks automated, and needs a person' },
  BAD_ENCODING: { status: PAGE_STATUSES, cause: 'the page has an unsupported encoding' },
  BRANCH_MOVED: { status: 409, cause: 'another program has moved the branch: retry' },
  CLONE_UNPAID: { status: 409, cause: 'the agent is an unpaid clone: pay for it first' },
  CONFIRMATION_REQUIRED: {
    status: 409,
    cause: 'the request destroys the data in `lost`: repeat it with `confirm`',
  },
  content_refused: { status: 400, cause: 'the AI provider refuses to answer this' },
  context_length_exceeded: { status: 400, cause: 'the conversation is too long for the model' },
  CREDENTIAL_LIMIT_REACHED: {
    status: 409,
    cause: 'the agent has `limit` credentials: remove one first',
  },
  CREDITS_DISPUTED: {
    status: 402,
    cause: 'a payment of yours is disputed, or you owe credits: settle that first',
  },
  CREDITS_EXHAUSTED: {
    status: 402,
    cause: 'you have too few credits that may pay; with `price` and `remaining`',
  },
  CSRF_TOKEN_REQUIRED: {
    status: 403,
    cause: 'a request from another site needs the CSRF token of the session',
  },
  EMAIL_TAKEN: { status: 409, cause: 'an account has this address already' },
  ESCROW_INSUFFICIENT: {
    status: 402,
    cause: 'the wallet has too little in the escrow: deposit more and retry',
  },
  EVENT_LIMIT_REACHED: {
    status: 409,
    cause: 'the agent has `limit` events: retention removes past ones',
  },
  FILE_CHANGED: { status: 409, cause: 'the file has another `etag`: read the file again' },
  FILE_EXISTS: { status: 409, cause: 'the file exists already' },
  HOST_GONE: { status: 409, cause: "the agent's host and its memory are lost: remove the agent" },
  HOST_REMOVING: { status: 409, cause: 'the host is being removed' },
  HOST_REPORTS: {
    status: 409,
    cause: "the host's worker still reports: drain the host and stop its worker first",
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    cause: 'the `Idempotency-Key` was used with a different request: use a new key',
  },
  IDENTITY_LIMIT_REACHED: { status: 409, cause: 'the account has `limit` such identities' },
  IDENTITY_TAKEN: { status: 409, cause: 'an account has this identity already' },
  INSTALLATION_LIMIT_REACHED: {
    status: 409,
    cause: 'there are `limit` installations whose id is no account',
  },
  INSUFFICIENT_FUNDS: { status: 402, cause: 'the balance is too low' },
  INVALID_URL: { status: [400, 500], cause: 'the URL is not an http or https URL' },
  KEY_LIMIT_REACHED: { status: 409, cause: 'you have `limit` API keys: delete one first' },
  LAST_SIGN_IN_METHOD: {
    status: 409,
    cause: 'the identity is the last way to sign in: add another one first',
  },
  MEMORY_BUSY: { status: 409, cause: "the agent's memory is being replaced: retry afterwards" },
  MEMORY_FULL: { status: 409, cause: "the agent's memory is full: remove files first" },
  MEMORY_MISSING: { status: 409, cause: 'the agent has no memory yet: start it first' },
  MESSAGE_DELIVERED: {
    status: 409,
    cause: "the message is delivered: only the recipient's owner may have it delivered again",
  },
  MESSAGE_ID_REUSED: {
    status: 409,
    cause: 'the sender has another message of this `messageId`: use a new one',
  },
  MESSAGE_LIMIT_REACHED: {
    status: 429,
    cause: 'a limit of the bus is reached, with `current` and `limit`: retry later',
  },
  model_not_found: { status: 404, cause: 'no provider has the model: choose another one' },
  MODEL_RESTRICTED: { status: 403, cause: 'your plan does not include the model' },
  NAME_TAKEN: { status: 409, cause: 'you have an agent of this name already' },
  NOT_HTML: { status: PAGE_STATUSES, cause: 'the URL does not lead to an HTML page' },
  OPERATION_IN_FLIGHT: {
    status: 409,
    cause: 'another operation of the agent is running: retry afterwards',
  },
  PASSWORD_INCORRECT: { status: 403, cause: 'the current password is wrong' },
  PAYMENT_INVALID: {
    status: 402,
    cause: 'the transaction is no valid payment for this clone; with `reason`',
  },
  PAYMENT_NOT_FOUND: { status: 402, cause: 'the chain does not have the transaction yet: retry' },
  PAYMENT_REQUIRED: {
    status: 402,
    cause: 'the request has no means of payment; with `price`, `currency` and `payment`',
  },
  PAYMENT_USED: { status: 409, cause: 'the transaction has already paid for a clone' },
  PLAN_REQUIRED: { status: 402, cause: 'you have no plan, or a lower one: subscribe' },
  PRICE_ABOVE_MAXIMUM: {
    status: 402,
    cause: 'the run costs more than `maxPrice`; with `price` and `currency`',
  },
  PROVIDER_KEY_REFUSED: {
    status: 400,
    cause: 'the AI provider in `provider` refuses your own key: replace or disable it',
  },
  QUOTA_EXCEEDED: { status: 429, cause: "the plan's tokens of this month are used up" },
  REAUTHENTICATION_REQUIRED: { status: 403, cause: 'the session is not fresh: sign in again' },
  REPOSITORY_BUSY: {
    status: 409,
    cause: 'another program is at work in the repository: retry when `lock` is gone',
  },
  REQUEST_IN_FLIGHT: {
    status: 409,
    cause: 'the first request with this `Idempotency-Key` is still running: retry later',
  },
  SCOPE_REQUIRED: { status: 403, cause: 'the API key lacks the scope in `required`' },
  SESSION_CLOSED: {
    status: 402,
    cause: 'the payment session is closed or closing: open another',
  },
  SESSION_EXHAUSTED: {
    status: 402,
    cause: 'the payment session has too little left; with `price` and `remaining`',
  },
  SESSION_INVALID: {
    status: 402,
    cause: 'the payment session does not exist, or is of another wallet',
  },
  SESSION_REQUIRED: { status: 403, cause: 'API keys are not accepted here: sign in' },
  SKILL_LIMIT_REACHED: {
    status: 429,
    cause: 'your plan allows `limit` skills for each agent: disable one or upgrade',
  },
  SKILL_NAME_TAKEN: {
    status: 409,
    cause: 'another author has a skill of this name: choose another name',
  },
  SKILL_NOT_INSTALLED: {
    status: 409,
    cause: 'the agent does not have the skill: install it first',
  },
  SKILL_WITHDRAWN: {
    status: 409,
    cause: 'an administrator withdrew the skill: keep it private, or ask the operator',
  },
  SKILLS_FULL: { status: 409, cause: 'you have `limit` skills: change one of them' },
  SPLIT_NOT_FAILED: {
    status: 409,
    cause: 'only a partial or failed split can be retried; with `status`',
  },
  STREAM_LIMIT_REACHED: { status: 409, cause: 'you have `limit` radio streams: delete one first' },
  SUBSCRIPTION_REQUIRED: { status: 402, cause: 'you have no active subscription' },
  SWARM_LIMIT_REACHED: {
    status: 429,
    cause: '`limit` of your swarms are under way: retry when one has ended',
  },
  SWARM_STATE: {
    status: 409,
    cause: 'the state of the swarm does not allow the action, or its last answers are outstanding',
  },
  SYNC_IN_FLIGHT: { status: 409, cause: 'another sync of the workspace is running: retry later' },
  TASK_LIMIT_REACHED: {
    status: 409,
    cause: 'the agent or you have `limit` scheduled tasks: remove one first',
  },
  TASK_RUNNING: { status: 409, cause: 'the scheduled task is running already' },
  TIMEOUT: { status: [500, 504], cause: 'the page did not answer in time' },
  TOO_COMPLEX: { status: PAGE_STATUSES, cause: 'the page is too complex to be read' },
  TOO_LARGE: { status: PAGE_STATUSES, cause: 'the page is too large' },
  TOO_MANY_REDIRECTS: { status: PAGE_STATUSES, cause: 'the page redirects too often' },
  UNREACHABLE: { status: PAGE_STATUSES, cause: 'the page cannot be reached' },
  unsupported_parameter: { status: 400, cause: 'the field in `param` is not supported' },
  UPSTREAM_STATUS: { status: PAGE_STATUSES, cause: 'the page answers with an error' },
  URL_NOT_ALLOWED: { status: [403, 500], cause: 'the URL leads to no public address' },
  VERSION_FAILED: {
    status: 409,
    cause: 'the update to this version has failed before: name the version to retry',
  },
  VIDEO_LIMIT_REACHED: {
    status: 429,
    cause: '`limit` of your videos are under way, or were made today: retry later',
  },
  WALLET_LIMIT_REACHED: { status: [400, 409], cause: 'there are `limit` wallets already' },
  WALLET_MISSING: {
    status: 409,
    cause: 'the platform keeps no wallet of the agent: create one first',
  },
} as const satisfies Readonly<Record<string, Coded>>;

export type ErrorCode = keyof typeof ERROR_CODES;

export const isErrorCode = (value: unknown): value is ErrorCode =>
  typeof value === 'string' && Object.hasOwn(ERROR_CODES, value);
