import { Op } from 'sequelize';
import { ownedThrough } from '../schema/policies.js';
import { boolean, created, key, nullable, table, text, withDefault } from '../schema/table.js';

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
    createdAt: created(),
  },
  [
    { name: 'wallets_user_key', unique: true, fields: ['user_id'], where: { kind: 'user' } },
    {
      name: 'wallets_provider_key',
      unique: true,
      fields: ['user_id'],
      where: { kind: 'provider' },
    },
    {
      name: 'wallets_imported_key',
      unique: true,
      fields: ['user_id', 'address'],
      where: { kind: 'imported' },
    },
    {
      name: 'wallets_agent_key',
      unique: true,
      fields: ['agent_id'],
      where: { agent_id: { [Op.ne]: null } },
    },
    { name: 'wallets_user_created', fields: ['user_id', 'created_at', 'id'] },
    { name: 'wallets_address', fields: ['address'] },
  ],
  ownedThrough('user_id'),
);
