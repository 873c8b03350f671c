import {
  DataTypes,
  type CreationOptional,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';

/** A key by which a user's program calls the backend. The key itself is stored nowhere. */
export interface ApiKeyRow extends Model<
  InferAttributes<ApiKeyRow>,
  InferCreationAttributes<ApiKeyRow>
> {
  id: string;
  userId: string;
  name: string;
  /** The key's first and last letters. */
  keyPreview: string;
  /** By bcrypt. */
  keyHash: string;
  /** SHA-256 of the key in hex, by which it is found. */
  lookupHash: string;
  createdAt: CreationOptional<Date>;
  /** To the minute; null until it is used. */
  lastUsed: Date | null;
}

export const defineApiKey = (sequelize: Sequelize) =>
  sequelize.define<ApiKeyRow>(
    'ApiKey',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      userId: { type: DataTypes.TEXT, allowNull: false },
      name: { type: DataTypes.TEXT, allowNull: false },
      keyPreview: { type: DataTypes.TEXT, allowNull: false },
      keyHash: { type: DataTypes.TEXT, allowNull: false },
      lookupHash: { type: DataTypes.TEXT, allowNull: false },
      createdAt: { type: DataTypes.DATE, allowNull: false },
      lastUsed: DataTypes.DATE,
    },
    {
      tableName: 'api_keys',
      updatedAt: false,
      indexes: [
        { name: 'api_keys_lookup_hash_key', unique: true, fields: ['lookup_hash'] },
        { name: 'api_keys_user_time', fields: ['user_id', 'created_at'] },
      ],
    },
  );
