import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { choice } from '../../platform/environment/types.js';

export const cloneSettings = area('Clones', ({ production }) => ({
  payerProof: variable(
    'CLONE_PAYER_PROOF',
    choice('linked', 'required').prefault(production ? 'required' : 'linked'),
    'required proof that the user made the payment, since payments are public: `linked`: the payer is a linked wallet, or the user has no linked wallet; `required`: the payer is a linked wallet, or signs the request',
  ),
}));

export type CloneSettings = SettingsOf<typeof cloneSettings>;
