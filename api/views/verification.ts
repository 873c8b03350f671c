import * as z from 'zod';
import type { AgentVerification } from '../../src/agents/verification/verifications.js';
import { CHECK_NAMES } from '../../src/types/verification.js';
import { answeredAddress } from './chain-address.js';

const hex = z.string().meta({ examples: ['0x9c1e'] });

const attestation = z
  .strictObject({
    signer: answeredAddress,
    version: z.literal(2),
    uid: hex,
    domain: z.strictObject({
      name: z.literal('EAS Attestation'),
      version: z.literal('1.4.0'),
      chainId: z.int(),
      verifyingContract: answeredAddress,
    }),
    primaryType: z.literal('Attest'),
    types: z.strictObject({
      Attest: z.array(z.strictObject({ name: z.string(), type: z.string() })),
    }),
    message: z.strictObject({
      version: z.literal(2),
      schema: hex,
      recipient: answeredAddress,
      time: z.string().meta({ examples: ['1795827600'] }),
      expirationTime: z.string().meta({ examples: ['0'] }),
      revocable: z.boolean(),
      refUID: hex,
      data: hex,
      salt: hex,
    }),
    signature: z.strictObject({ v: z.int(), r: hex, s: hex }),
  })
  .meta({ id: 'Attestation' });

export const agentVerification = z
  .strictObject({
    agentId: z.string(),
    verified: z.boolean(),
    verificationType: z.string().nullable(),
    attestationUid: z.string().nullable(),
    verifiedAt: z.iso.datetime().nullable().describe('Time of the measurement'),
    checks: z.array(
      z.strictObject({
        name: z.enum(CHECK_NAMES),
        ok: z.boolean(),
        detail: z.string().meta({ examples: ['live, ready, 401 without its token'] }),
      }),
    ),
    attestation: attestation.nullable(),
  })
  .meta({ id: 'AgentVerification' });

export const presentVerification = ({ checks, verifiedAt, ...other }: AgentVerification) => ({
  ...other,
  verifiedAt: verifiedAt?.toISOString() ?? null,
  checks: checks.map(({ name, ok, detail }) => ({ name, ok, detail })),
});
