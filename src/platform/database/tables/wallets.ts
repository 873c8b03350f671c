import { Op } from 'sequelize';
import { ownedThrough } from '../schema/policies.js';
import {
  boolean,
  created,
  index,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

/**
 * `user`: created here, one for each user; `agent`: an agent's, created here or brought by the agent;
 * `imported`: a further wallet of a user, with an imported key or one created here; `provider`: at the
 * wallet provider.
 */
export type WalletKind = 'user' | 'agent' | 'imported' | 'provider';

/** Wallets of users and of their agents. An address is the same on every EVM chain. */
export const Wallet = table(
  'wallets',
  {
    id: key(text()),
    /** Owner; meaningless once the account is deleted. */
    userId: text(),
    /** Agent of a wallet of kind `agent`; null once the agent's data are deleted. */
    agentId: nullable(text()),
    kind: text<WalletKind>(),
    /** Address in lower case. */
    address: text(),
    /** Private key that only `openKey` opens; null for a wallet whose key is stored elsewhere. */
    sealedKey: nullable(text()),
    /** True if the key was imported, so that its owner may have a copy. */
    brought: withDefault(boolean(), false),
    /** True for a brought wallet whose signatures only its contract verifies. */
    isContract: withDefault(boolean(), false),
    /** `identityId` of the session that added the wallet, by itself or by its API key. */
    addedBy: nullable(text()),
    /** Set while an identity that led to the wallet is reported as hijacked. */
    suspendedAt: nullable(timestamp()),
    createdAt: created(),
  },
  [
    unique('wallets_user_key', ['user_id'], { kind: 'user' }),
    unique('wallets_provider_key', ['user_id'], { kind: 'provider' }),
    unique('wallets_imported_key', ['user_id', 'address'], { kind: 'imported' }),
    unique('wallets_agent_key', ['agent_id'], { agent_id: { [Op.ne]: null } }),
    index('wallets_user_created', ['user_id', 'created_at', 'id']),
    index('wallets_address', ['address']),
  ],
  ownedThrough('user_id'),
);
