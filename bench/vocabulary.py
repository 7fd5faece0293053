"""List the words of generated documents: Japanese nouns, loanwords, verbs and English."""

from __future__ import annotations

# Common words first: the position of a word decides how often it occurs.
NOUNS = """
設定 検索 文書 利用 環境 情報 処理 方法 管理 場合 機能 結果 確認 画面 手順 変更 会議 調査 資料 更新 作業 計画 評価
担当 対応 実装 設計 開発 試験 障害 運用 構築 索引 辞書 解析 実験 報告 連絡 課題 期限 決定 費用 予算 契約 提案 分析
統計 学習 研究 論文 仮説 検証 性能 品質 計測 記憶 領域 並列 同期 排他 制御 認証 認可 暗号 署名 証明 通信 経路 接続
切断 監視 復旧 予備 保存 移行 削除 追加 履歴 配布 公開 請求 企画 機械 推論 特徴 行列 確率 分布 標本 誤差 傾向 見出し
段落 語彙 頻度 距離 精度 閾値 京都 奈良 東京 大阪 札幌 福岡 仙台 神戸 横浜 広島 金沢 長崎 鎌倉 日光 庭園 紅葉 寺院
神社 旅館 温泉 料理 玉葱 醤油 味噌 豆腐 出汁 野菜 果物 牛肉 鶏肉 米飯 緑茶 菓子 音楽 映画 小説 演劇 絵画 彫刻 写真
建築 歴史 文化 宗教 哲学 倫理 法律 憲法 刑法 民法 裁判 判決 訴訟 弁護 警察 消防 救急 病院 医師 看護 患者 診断 治療
手術 投薬 薬剤 副作用 免疫 感染 予防 検査 血液 心臓 肺炎 糖尿 栄養 睡眠 運動 体操 野球 水泳 登山 釣り 自転車 自動車
鉄道 駅舎 切符 空港 航空 船舶 港湾 道路 橋梁 渋滞 事故 保険 年金 税金 銀行 口座 預金 貸付 利息 為替 株式 債券 投資
企業 社員 部長 課長 人事 採用 面接 研修 給与 賞与 残業 休暇 育児 介護 福祉 教育 学校 大学 教授 学生 授業 宿題 卒業
入試 奨学金 図書館 書店 雑誌 新聞 記者 放送 番組 広告 宣伝 販売 営業 顧客 注文 発送 倉庫 在庫 返品 価格 割引 決済
領収書 店舗 市場 農業 林業 漁業 畜産 工業 工場 製造 部品 組立 溶接 塗装 電力 電池 電流 電圧 磁石 回路 半導体 光学
望遠鏡 天文 惑星 彗星 銀河 重力 物理 化学 分子 原子 元素 触媒 酸素 水素 炭素 窒素 金属 鉱物 岩石 火山 地震 津波 台風
豪雨 洪水 積雪 気温 湿度 気圧 天気 予報 季節 春分 夏至 秋分 冬至 植物 樹木 花粉 種子 根茎 果実 動物 哺乳類 鳥類 魚類
昆虫 細菌 細胞 遺伝子 進化 生態 森林 河川 湖沼 海洋 砂漠 氷河 島嶼 半島 国境 外交 条約 選挙 議会 政党 首相 大臣 知事
市長 自治体 住民 投票 予定 日程 締切 出張 交通 宿泊 受付 名簿 住所 電話 番号 氏名 印鑑 書類 申請 許可 免許 届出 規則
規約 規格 標準 基準 指針 方針 目的 目標 成果 効果 影響 原因 理由 根拠 背景 経緯 現状 将来 見込み 可能性 必要性 安全
危険 警告 注意 禁止 違反 罰則 例外 条件 範囲 対象 種類 分類 階層 構造 要素 属性 関係 関数 変数 定数 引数 戻り値 配列
文字列 整数 小数 論理 命令 構文 意味 解釈 翻訳 変換 圧縮 展開 複製 転送 送信 受信 入力 出力 表示 印刷 描画 選択 範例
雛形 部屋 台所 風呂 洗濯 掃除 収納 家具 照明 窓枠 屋根 外壁 基礎 土地 隣人 挨拶 友人 家族 夫婦 親子 兄弟 祖母 祖父
子供 老人 若者 女性 男性 服装 着物 帽子 眼鏡 時計 指輪 財布
""".split()
LOANWORDS = """
データ ファイル サーバー ユーザー システム テスト エラー ページ ログ コード プロジェクト クライアント データベース
キャッシュ クエリ インデックス トークン メモリー ディスク ネットワーク プロトコル ライブラリー フレームワーク
コンポーネント テンプレート フォーム ブラウザー エディター デプロイ バージョン ブランチ コミット レビュー スキーマ
モジュール パッケージ クラス メソッド オブジェクト パラメーター オプション コマンド ターミナル ディレクトリー
フォルダー パス リンク ボタン メニュー ダイアログ ウィンドウ アイコン フォント レイアウト スタイル アニメーション
イベント スレッド プロセス タスク スケジュール キュー メッセージ ストリーム バッファー パイプライン バッチ
トランザクション バックアップ セキュリティー パスワード アカウント セッション クッキー ポート ホスト ドメイン アドレス
ルーター ゲートウェイ コンテナー クラスター ノード レプリカ シャード ベクトル モデル パターン アルゴリズム ヒープ
グラフ ツリー リスト スタック ハッシュ カレンダー メール チャット ミーティング レポート アンケート グループ チーム
リーダー スポンサー イベントホール コーヒー パン チーズ バター サラダ スープ カレー パスタ ケーキ レストラン ホテル
タクシー バス カメラ ピアノ ギター ドラマ アニメ ゲーム サッカー テニス エネルギー ウイルス ワクチン ビタミン
カルシウム プラスチック ガラス コンクリート エンジン タイヤ ロボット センサー モーター
""".split()
# Verb stems, to which the forms below are appended (… て, … た, … ます).
VERBS = """
調べ 比べ まとめ 避け 求め 認め 伝え 考え 見つけ 取り付け 切り替え 書き換え 並べ替え 組み立て 受け入れ 確かめ 続け
始め 止め 決め 集め 分け 加え 変え 与え 得 備え 支え 整え 見直し 取り出し 繰り返し 示し 残し 移し 消し 戻し 探し
起こし 直し 出し 試し 渡し 壊し
""".split()
FORMS = """
た ます ました ない られる させる ている ておく てみる てください ている場合がある ないことが多い たことがある
""".split()
ENDS = """
ことができる。 必要がある。 ようにする。 場合は注意する。 ことになった。 のが望ましい。 と考えられる。 とよい。
わけではない。 ためである。 はずだ。 ことが知られている。 かもしれない。 らしい。 そうだ。 からだ。 のである。
ところだ。 ものとする。 恐れがある。 つもりだ。 と聞いた。
""".split()
LINKS = "また さらに ただし 一方、 例えば 次に 最後に 同様に 通常 特に まれに 原則として".split()
COUNTERS = "件 個 回 名 台 冊 行 秒 分 円 年 度 点 枚 社 種".split()
ENGLISH = """
search data index document user file system server test error page code query result value project heading table token
request response client database cache memory disk network protocol library framework component template form
validation log deploy browser editor configure install upgrade remove restart monitor backup restore migrate release
branch commit merge review schema column row key string number array object function method class module package
import export parse render compile optimise measure compare option command terminal directory folder path link button
menu dialog window icon font layout style animation event thread process task schedule queue message stream buffer
pipeline batch transaction security password account session cookie port host domain address router gateway container
cluster node replica shard vector model pattern algorithm heap graph tree list stack hash calendar mail chat meeting
report survey group team leader weather climate river mountain forest ocean island desert glacier volcano earthquake
season harvest garden kitchen recipe bread butter cheese coffee dinner breakfast restaurant hotel ticket station
airport railway bridge harbour traffic accident insurance pension bank deposit interest exchange investment employee
manager interview training salary holiday childcare welfare education university professor student lecture homework
graduation scholarship bookstore magazine newspaper journalist broadcast advertisement customer order shipment
warehouse inventory refund price discount payment receipt market agriculture fishery factory assembly welding battery
current voltage magnet circuit semiconductor optics telescope astronomy planet comet galaxy gravity physics chemistry
molecule atom element catalyst oxygen hydrogen carbon nitrogen metal mineral rock temperature humidity pressure
forecast plant pollen seed root fruit animal mammal bird insect bacteria cell gene evolution ecology border diplomacy
treaty election parliament minister governor citizen vote deadline passport licence regulation standard guideline
purpose target effect influence cause reason evidence background history future risk warning exception condition range
category hierarchy structure attribute relation variable constant argument syntax meaning translation compression
transfer music painting sculpture photograph architecture culture religion philosophy ethics lawyer judge police
hospital doctor nurse patient diagnosis surgery medicine vaccine infection nutrition sleep exercise baseball tennis
swimming bicycle
""".split()
GLUE = "the a of to and in is for with on that by as it from every never always before after when".split()
KANA = (
    "ア イ カ キ ク コ サ シ ス セ タ ト ナ ニ ネ ノ マ ミ メ モ ラ リ ル レ ロ バ ビ ベ ボ ダ ド ガ ゴ ザ ン".split()
)
SYLLABLES = "ba be ka ko du fen gar hol in jur kel lor mi nas or pel qua ris sol tam ul ver wex yor zan".split()
