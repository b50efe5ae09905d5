dataset_name = "own"
yuv_fmt = "yuv420p"
ref_dir = "/data"
ref_videos = [
    {"content_id": 0, "content_name": "park", "path": ref_dir + "/park.yuv"},
]
dis_videos = [
    {"content_id": 0, "asset_id": 0, "os": [2, 3, 2, 2], "path": ref_dir + "/park_0.yuv"},
    {"content_id": 0, "asset_id": 1, "os": [4, 4, 4, 4], "path": ref_dir + "/park_1.yuv"},
    {"content_id": 0, "asset_id": 2, "os": [1, 2, 1, 1], "path": ref_dir + "/park_2.yuv"},
    {"content_id": 0, "asset_id": 3, "os": [3, 3, 3, 3], "path": ref_dir + "/park_3.yuv"},
    {"content_id": 0, "asset_id": 4, "os": [5, 4, 5, 5], "path": ref_dir + "/park_4.yuv"},
    {"content_id": 0, "asset_id": 5, "os": [2, 2, 2, 2], "path": ref_dir + "/park_5.yuv"},
]
